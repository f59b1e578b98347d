"""Operations on the hub itself: its health, its settings, building collections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services import HealthService
from hub.services.disk_space import DiskReport
from hub.services.entry_search import IndexReport, IndexState
from hub.services.hub_health import Health, HubFreshness
from hub.services.served_collections import CollectionService
from hub.settings import SettingReport
from hub.web.audited_requests import note_detail
from hub.web.json_output import (
    DelayJson,
    FeedFreshnessJson,
    JsonObject,
    Time,
    former_name,
    json_response,
)
from hub.web.monitoring_routes import ReadinessJson
from hub.web.operation import ApiOperation, Routes
from hub.web.request_input import RequestBody, read_body
from protocols.scp.collection import CollectionType
from storage.records import Backlog, FeedHealth, SubscriptionHealth, TokenScope


class CollectionsToBuild(RequestBody):
    """The body of ``POST /api/scp/build``."""

    snapshots: bool = False


class CollectionBuildJson(JsonObject):
    """A build. ``pages_written``: pages so far; null if none is under way."""

    pages_written: int | None


class BacklogJson(JsonObject):
    """How much the hub has, and what waits."""

    feeds: int
    subscriptions: int
    fanouts: int
    chunks: int
    retrying: int
    dead_letters: int
    track_queries: int
    oldest_due: Time | None
    oldest_undelivered: Time | None
    stragglers: Annotated[int, former_name("retrying")]
    dead: Annotated[int, former_name("dead_letters")]

    @classmethod
    def of_backlog(cls, backlog: Backlog) -> Self:
        return cls.of(backlog, stragglers=backlog.retrying, dead=backlog.dead_letters)


class FeedStatesJson(JsonObject):
    """How many feeds are in each state."""

    ok: int
    pushed: int
    slow: int
    failing: int
    gone: int
    paused: int


class SubscriptionStatesJson(JsonObject):
    """How many active subscriptions are in each state."""

    ok: int
    slow: int
    failing: int
    paused: int


class EndedSubscriptionsJson(JsonObject):
    """How many subscriptions have ended and are still kept.

    ``gone``: their callbacks answered 410; ``gone_of_day``: in the last day.
    ``ended``: otherwise.
    """

    gone: int
    gone_of_day: int
    ended: int


class DatabaseJson(JsonObject):
    """The database. ``schema``: its version; ``head``: the last position of the log."""

    engine: str
    location: str
    schema: int
    epoch: str
    head: int
    size_bytes: int
    wal_bytes: int


class FreshnessJson(FeedFreshnessJson):
    """How late new entries of all feeds are.

    ``undated``: entries without a believable date, which are not among those of
    ``publication_to_commit``. ``live_lag``: seconds that live streams are behind.
    ``split_per_second``: how many deliveries a second fan-outs were split into, in the
    last minute.
    """

    undated: int
    live_lag: float
    split_per_second: float

    @classmethod
    def of_hub(cls, freshness: HubFreshness) -> Self:
        return cls(
            publication_to_commit=DelayJson.of(freshness.to_commit),
            commit_to_delivery=DelayJson.of(freshness.to_delivery),
            undated=freshness.undated,
            live_lag=round(freshness.live_lag, 3),
            split_per_second=round(freshness.split_rate, 3),
        )


class DiskJson(JsonObject):
    """How much space there is, and what takes it, in bytes.

    The first six are bytes of the database, about, by purpose; ``collections`` are
    beside it. ``free_pages`` of the database are used again. ``disk_size`` and
    ``disk_free`` are those of the disk. ``limit``: the size of the database at which
    the oldest entries go; 0: there is none, as for a database on a server, of whose
    disk nothing is foreseen. ``growth_per_day`` of the database, and ``loss_per_day``
    of the disk's free space, are by the rate of the last day, and null until they are
    known. ``limit_at`` and ``full_at``: when the limit is reached and the disk is full;
    null if that is not foreseen. ``outlook`` says it in sentences.
    """

    entries: int
    search: int
    seen: int
    deliveries: int
    other: int
    free_pages: int
    collections: int
    disk_free: int
    disk_size: int
    limit: int
    growth_per_day: int | None
    loss_per_day: int | None
    limit_at: Time | None
    full_at: Time | None
    outlook: str

    @classmethod
    def of_disk(cls, disk: DiskReport) -> Self:
        sizes, forecast = disk.purposes, disk.forecast
        return cls(
            entries=sizes["entries"],
            search=sizes["search"],
            seen=sizes["seen"],
            deliveries=sizes["deliveries"],
            other=sizes["other"],
            free_pages=sizes["free"],
            collections=sizes["collections"],
            disk_free=disk.free,
            disk_size=disk.total,
            limit=disk.limit,
            growth_per_day=round(forecast.growth) if forecast else None,
            loss_per_day=round(forecast.loss) if forecast else None,
            limit_at=forecast.limit_at if forecast else None,
            full_at=forecast.full_at if forecast else None,
            outlook=disk.outlook,
        )


class SearchJson(JsonObject):
    """Whether entries can be found by their words.

    ``days``: entries dated in the last so many days; null: all. ``share``: of these,
    what is in the index while it is being built.
    """

    state: IndexState
    days: float | None
    share: float

    @classmethod
    def of_report(cls, report: IndexReport) -> Self:
        days = None if math.isinf(report.days) else report.days
        return cls.of(report, days=days, share=round(report.share, 3))


class HealthJson(ReadinessJson):
    """Whether the hub can work, and how it is; ``uptime`` is in seconds.

    Feeds and active subscriptions are counted by their state.
    """

    version: str
    uptime: float
    feed_states: FeedStatesJson
    subscription_states: SubscriptionStatesJson
    ended_subscriptions: EndedSubscriptionsJson
    backlog: BacklogJson
    database: DatabaseJson
    freshness: FreshnessJson
    disk: DiskJson
    search: SearchJson

    @classmethod
    def of_health(cls, health: Health) -> Self:
        database = health.database
        return cls.of_conditions(
            health.conditions,
            version=health.version,
            uptime=round(health.uptime, 3),
            feed_states=FeedStatesJson(**_by_word(health.feeds)),
            subscription_states=SubscriptionStatesJson(
                **_by_word(health.subscriptions)
            ),
            ended_subscriptions=EndedSubscriptionsJson.of(health.ended_subscriptions),
            backlog=BacklogJson.of_backlog(health.backlog),
            database=DatabaseJson.of(
                database, schema=database.version, head=database.log_end
            ),
            freshness=FreshnessJson.of_hub(health.freshness),
            disk=DiskJson.of_disk(health.disk),
            search=SearchJson.of_report(health.search),
        )


def _by_word(
    counts: Mapping[FeedHealth, int] | Mapping[SubscriptionHealth, int],
) -> dict[str, int]:
    return {state.value: count for state, count in counts.items()}


class CollectionJson(JsonObject):
    """One file for crawlers."""

    name: str
    section: str
    type: CollectionType
    generated: Time
    since: Time | None
    expires: Time
    pages: int
    size: int


class CollectionsBuiltJson(JsonObject):
    collections: list[CollectionJson]


class SettingJson(JsonObject):
    """A setting. ``name``: its variable in the environment.

    ``source``: ``default``, or the variable or option that gave the value. The value of
    a secret is not shown.
    """

    name: str
    option: str
    value: str
    default: str
    source: str
    help: str
    secret: bool


class SettingsJson(JsonObject):
    settings: list[SettingJson]


class OperatorRoutes(Routes):
    tag = "operator"

    def __init__(
        self,
        operations: HealthService,
        collections: CollectionService,
        settings: Sequence[SettingReport],
    ) -> None:
        self._operations = operations
        self._collections = collections
        self._settings = settings

    @ApiOperation(
        method="GET",
        path="/health",
        id="get_health",
        scope=TokenScope.ADMIN,
        summary="Whether the hub can work, and its backlog",
        description="The answer has `errors` if it cannot, `feed_states` and"
        " `subscription_states` (how many are in each state), backlog, database, and"
        " `freshness`: `publication_to_commit` and `commit_to_delivery` (`entries`,"
        " `p50` and `p99` in seconds, null without data), `undated` (entries without a"
        " believable date), `live_lag` (seconds that live streams lag),"
        " `split_per_second` (deliveries split from fan-outs); and"
        " `disk`: bytes by purpose, free space, growth, and when the disk is full;"
        " `search`: `state` of the index (`complete`, `building`, `off`), the `days`"
        " it covers (null: all) and the `share` of entries it has.",
        answers={200: HealthJson},
    )
    async def health(self, request: Request) -> Response:
        return json_response(HealthJson.of_health(await self._operations.health()))

    @ApiOperation(
        method="GET",
        path="/settings",
        id="list_settings",
        scope=TokenScope.ADMIN,
        summary="All settings, and where each value is from",
        description="Each has the variable (`name`) and `option`, `value`, `default`,"
        " `source` (`default`, or the variable or option that gave the value), and"
        " `help`; `secret` ones are without their value.",
        answers={200: SettingsJson},
    )
    async def settings(self, request: Request) -> Response:
        return json_response(
            SettingsJson(
                settings=[
                    SettingJson.of(each, secret=each.is_secret)
                    for each in self._settings
                ]
            )
        )

    @ApiOperation(
        method="GET",
        path="/scp/build",
        id="get_collection_build",
        scope=TokenScope.ADMIN,
        summary="How far the build of collections is that is under way",
        description="`pages_written` is null if there is none.",
        answers={200: CollectionBuildJson},
    )
    async def building(self, request: Request) -> Response:
        return json_response(
            CollectionBuildJson(pages_written=self._collections.pages_written)
        )

    @ApiOperation(
        method="POST",
        path="/scp/build",
        id="build_collections",
        scope=TokenScope.ADMIN,
        summary="Build collections for crawlers now",
        description='`{"snapshots": true}`: including all snapshots. The answer says'
        " what was built.",
        answers={201: CollectionsBuiltJson},
        body=CollectionsToBuild(snapshots=True),
        problems=(409,),
    )
    async def build(self, request: Request) -> Response:
        body = await read_body(request, CollectionsToBuild)
        built = await self._collections.build(snapshots=body.snapshots)
        note_detail(request, f"{len(built):,} files")
        return json_response(
            CollectionsBuiltJson(
                collections=[CollectionJson.of(each) for each in built]
            ),
            HTTPStatus.CREATED,
        )
