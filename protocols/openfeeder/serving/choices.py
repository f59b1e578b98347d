"""What an operator chooses from (10, "Gatekeeper Configuration"): quick to import."""

from __future__ import annotations

from enum import StrEnum


class AuthorDisplay(StrEnum):
    """Display names, or none at all."""

    NAME = "name"
    HIDDEN = "hidden"


class PageType(StrEnum):
    """What can be excluded by type: as schema.org would name the page."""

    POST = "post"
    AUDIO = "audio"
    VIDEO = "video"
