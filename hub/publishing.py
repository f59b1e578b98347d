"""Putting together what is published for crawlers and language models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hub.collections.builder import BuildOptions, CollectionBuilder
from hub.collections.pages import PageKeeper
from hub.collections.publisher import Publisher
from hub.collections.shelf import Shelf
from hub.openfeeder.gatekeeper import Gatekeeper
from hub.runtime.background import BackgroundTask
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from hub.services.collections import CollectionService
from hub.services.openfeeder import OpenFeederOptions, OpenFeederService
from hub.settings import Settings
from protocols.openfeeder.serving.choices import AuthorDisplay
from protocols.scp.collection import Encoding
from storage.interface import Storage

FOLDER = "scp"
"""Beside the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPublishing:
    service: CollectionService
    run: BackgroundTask


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
        PageKeeper(storage.pages, clock, public_url, settings.scp_language),
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
        run=Publisher(builder, clock, storage.log, is_on=is_on).run,
    )


def build_openfeeder(
    settings: Settings, storage: Storage, clock: Clock, public_url: str
) -> OpenFeederService:
    options = OpenFeederOptions(
        is_on=settings.openfeeder == "on",
        name=settings.openfeeder_name,
        language=settings.scp_language,
        contact=settings.contact,
        tombstone_seconds=settings.openfeeder_tombstone_seconds,
        gatekeeper=Gatekeeper(
            excluded_paths=settings.openfeeder_excluded_paths,
            excluded_types=frozenset(settings.openfeeder_excluded_types),
            authors=AuthorDisplay(settings.openfeeder_authors),
            key=settings.openfeeder_key,
        ),
    )
    return OpenFeederService(storage, clock, public_url, options)
