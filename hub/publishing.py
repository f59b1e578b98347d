"""Putting together what is published for crawlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from hub.clock import Clock
from hub.collections.builder import BuildOptions, CollectionBuilder
from hub.collections.pages import PageKeeper
from hub.collections.publisher import Publisher
from hub.collections.shelf import Shelf
from hub.config import Settings
from hub.metrics import Metrics
from hub.services.collections import CollectionService
from protocols.scp.collection import Encoding
from storage.interface import Storage

FOLDER = "scp"
"""Beside the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPublishing:
    service: CollectionService
    run: Callable[[], Coroutine[Any, Any, None]]


async def build_publishing(
    settings: Settings,
    storage: Storage,
    clock: Clock,
    metrics: Metrics,
    public_url: str,
) -> BuiltPublishing:
    is_on = settings.scp == "on"
    shelf = Shelf(settings.database_path.parent / FOLDER)
    if is_on:
        await asyncio.to_thread(shelf.open)
    builder = CollectionBuilder(
        storage,
        PageKeeper(storage.pages, clock, public_url),
        shelf,
        clock,
        BuildOptions(
            delta_seconds=settings.scp_delta_seconds,
            snapshot_seconds=settings.scp_snapshot_seconds,
            encoding=Encoding(settings.scp_compression),
            language=settings.scp_language,
        ),
        metrics,
    )
    return BuiltPublishing(
        service=CollectionService(builder, shelf, clock, public_url, is_on=is_on),
        run=Publisher(builder, clock, is_on=is_on).run,
    )
