"""The walk for each kind of site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hub.core.sites.openfeeder.walk import openfeeder_walk
from hub.core.sites.scp.walk import scp_walk
from hub.core.sites.steps import WalkOf
from protocols.model import FeedFormat

WALKS: Final[Mapping[str, WalkOf]] = {
    FeedFormat.OPENFEEDER: openfeeder_walk,
    FeedFormat.SCP: scp_walk,
}
