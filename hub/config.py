"""Settings: what the hub is told from outside.

Every setting is a field of `Settings` with its default, its reader and its help in one
place; the variable (``FANFARE_PORT``), the ``serve`` option (``--port``) and the
reference table are made from that. `hub.environment` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from hub.config_fields import Setting, setting
from hub.config_openfeeder import OpenFeederSettings
from hub.config_readers import (
    Addresses,
    database,
    hosts,
    language,
    line,
    networks,
    one_of,
    origin_url,
    seconds,
    text_file,
    whole,
)
from hub.core.cadence import PollingRules
from hub.core.sites.bounds import SiteBounds
from protocols.superfeedr.parameters import DEFAULT_LENGTHS, Lengths
from protocols.websub.callbacks import LONGEST_URL
from protocols.websub.leases import LONGEST_LEASE, SHORTEST_LEASE
from storage.records import Retention

DAY = 86_400.0
_WEEK = 7 * DAY
_RULES = PollingRules()
_SITES = SiteBounds()


def _rule(default: float, low: float, high: float, help: str) -> float:
    return setting(default, seconds(low, high), help, shown=f"{default:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(OpenFeederSettings):
    """All settings of a hub."""

    database: str = setting(
        "sqlite:data/fanfare.db",
        database,
        "where everything is kept; keys and the admin token lie beside the file",
    )
    host: str = setting("127.0.0.1", line, "the address to listen on")
    port: int = setting(8080, whole(0, 65_535), "the port to listen on; 0 picks one")
    public_url: str = setting(
        "",
        origin_url,
        "how others reach this hub; every link to itself is built from it",
        shown="http://localhost:PORT",
    )
    admin_token: str = setting(
        "",
        line,
        "the token of the administration API",
        shown="generated, in the file admin-token beside the database",
        is_secret=True,
    )
    allow_networks: tuple[Addresses, ...] = setting(
        (),
        networks,
        "networks the address guard lets requests into, unpaced: tests, intranets",
        shown="none",
    )
    allow_topic_networks: tuple[Addresses, ...] = setting(
        (), networks, "the same, for fetching feeds only", shown="none"
    )
    allow_callback_networks: tuple[Addresses, ...] = setting(
        (), networks, "the same, for delivering to callbacks only", shown="none"
    )
    blocked_hosts: tuple[str, ...] = setting(
        (),
        hosts,
        "hosts that no feed is fetched from, with all below them: publishers who want"
        " none of it",
        shown="none",
    )
    robots: str = setting(
        "off",
        one_of("off", "on"),
        "whether feeds that their site's robots.txt disallows are left alone",
    )
    open_hub: str = setting(
        "known",
        one_of("off", "known", "any"),
        "who may subscribe at /hub: nobody, whoever names a public topic or one that"
        " names this hub, or everybody",
    )
    min_lease: int = setting(
        SHORTEST_LEASE,
        whole(1, LONGEST_LEASE),
        "seconds a subscription at /hub lasts at least, whatever is asked for",
    )
    longest_topic: int = setting(
        DEFAULT_LENGTHS.topic,
        whole(1, LONGEST_URL),
        "characters of a topic at /, at most",
    )
    longest_callback: int = setting(
        DEFAULT_LENGTHS.callback,
        whole(1, LONGEST_URL),
        "characters of a callback at /, at most",
    )
    open_stream: str = setting(
        "on",
        one_of("on", "off"),
        "whether listening live to public topics takes no token",
    )
    stream_connections: int = setting(
        10_000, whole(0, 1_000_000), "live connections open at the same time"
    )
    contact: str = setting(
        "",
        line,
        "a URL or mail address shown to publishers in the User-Agent",
        shown="none",
    )
    min_period: float = _rule(
        _RULES.min_period, 1, _WEEK, "seconds between two polls of a feed, at least"
    )
    max_period: float = _rule(
        _RULES.max_period,
        1,
        4 * _WEEK,
        "seconds between two polls, at most; wins over every floor",
    )
    default_floor: float = _rule(
        _RULES.default_floor,
        1,
        _WEEK,
        "the floor of the period, in seconds, of feeds that earned no lower one",
    )
    earned_floor: float = _rule(
        _RULES.earned_floor,
        1,
        _WEEK,
        "the floor, in seconds, of feeds that answer 304 and post hourly or ask for it",
    )
    patience: float = _rule(
        _RULES.patience,
        1,
        _WEEK,
        "entry-seconds of waiting that a poll is worth to begin with",
    )
    poll_budget: float = setting(
        0.0,
        seconds(0, 10_000),
        "polls a second, for all feeds; 0: 24 a day for each feed, on average",
        shown="0",
    )
    dead_after: float = _rule(
        _RULES.dead_after,
        1,
        52 * _WEEK,
        "seconds of nothing but 404 after which a feed is dead: no longer polled",
    )
    poll_concurrency: int = setting(
        64, whole(1, 1_000), "feeds fetched at the same time"
    )
    site_requests: int = setting(
        _SITES.requests,
        whole(50, 100_000),
        "requests of one visit to a site that is read by many; the rest comes after",
    )
    site_seconds: float = setting(
        _SITES.seconds,
        seconds(1, 3_600),
        "seconds of one visit to such a site",
        shown=f"{_SITES.seconds:g}",
    )
    site_bytes: int = setting(
        _SITES.bytes,
        whole(1, 100 * 1024**3),
        "bytes that one visit to such a site may read",
    )
    site_entries: int = setting(
        _SITES.entries,
        whole(1, 10_000_000),
        "new and changed entries of one visit to such a site",
    )
    site_entries_of_day: int = setting(
        _SITES.entries_of_day,
        whole(1, 10_000_000),
        "new and changed entries of such a site in a day, UTC",
    )
    site_walk_seconds: float = setting(
        _SITES.walk_every,
        seconds(1, 4 * _WEEK),
        "seconds between two looks at all that a site lists, though it reports changes",
        shown=f"{_SITES.walk_every:g}",
    )
    site_reread_seconds: float = setting(
        _SITES.reread_every,
        seconds(1, 52 * _WEEK),
        "seconds between two readings of every page, where changes may not be reported",
        shown=f"{_SITES.reread_every:g}",
    )
    delivery_concurrency: int = setting(
        256, whole(1, 5_000), "deliveries under way at the same time"
    )
    sanitize: str = setting(
        "off",
        one_of("off", "on"),
        "whether content of new and changed entries is cleaned until it is safe to show"
        " in a page",
    )
    unlisted: str = setting(
        "told",
        one_of("told", "withheld"),
        "whether subscribers of a feed are told of entries that it wants kept out of"
        " whatever many can find",
    )
    porn_words: str = setting(
        "",
        text_file,
        "a file of words and phrases, one a line, by which feeds get a porn rank",
        shown="none",
    )
    scp: str = setting(
        "on",
        one_of("on", "off"),
        "whether collections of all public entries are built for crawlers (SCP)",
    )
    scp_delta_seconds: float = setting(
        3_600.0,
        seconds(60, 7 * DAY),
        "seconds between two collections of what has changed",
        shown="3600",
    )
    scp_snapshot_seconds: float = setting(
        DAY,
        seconds(60, 52 * 7 * DAY),
        "seconds between two collections of all there is",
        shown="86400",
    )
    scp_compression: str = setting(
        "gzip",
        one_of("gzip", "zstd"),
        "how collections are compressed, unless it would be by more than 90:1",
    )
    scp_language: str = setting(
        "en",
        language,
        "the language of pages whose entry and feed name none, such as en or de-CH",
    )
    scp_checksum: str = setting(
        "lenient",
        one_of("lenient", "strict", "off"),
        "how collections of others prove whole: by any checksum that publishers are"
        " known to make, by the specification's, or not",
    )
    log_retention_seconds: float = setting(
        30 * DAY,
        seconds(60, 3_650 * DAY),
        "age at which log records go, unless a late subscriber still needs them",
        shown="2592000",
    )
    log_retention_count: int = setting(
        1_000_000,
        whole(100, 1_000_000_000),
        "records kept, more only while a late subscriber needs them",
    )
    log_limit_seconds: float = setting(
        60 * DAY,
        seconds(60, 3_650 * DAY),
        "age at which log records go whoever still needs them",
        shown="5184000",
    )
    log_limit_count: int = setting(
        2_000_000,
        whole(100, 1_000_000_000),
        "records kept whoever needs more",
    )
    rate_limit_token: int = setting(
        6_000, whole(0, 10_000_000), "requests a minute with one token; 0: no limit"
    )
    rate_limit_address: int = setting(
        6_000,
        whole(0, 10_000_000),
        "requests a minute without a token of one address; 0: no limit",
    )
    trusted_proxies: tuple[Addresses, ...] = setting(
        (),
        networks,
        "networks of proxies whose X-Forwarded-For says who asks",
        shown="none",
    )
    log_level: str = setting(
        "info", one_of("debug", "info", "warning", "error"), "the least that is logged"
    )
    log_format: str = setting(
        "console", one_of("console", "json"), "how log lines look"
    )

    @property
    def site_bounds(self) -> SiteBounds:
        return SiteBounds(
            requests=self.site_requests,
            seconds=self.site_seconds,
            bytes=self.site_bytes,
            entries=self.site_entries,
            entries_of_day=self.site_entries_of_day,
            walk_every=self.site_walk_seconds,
            reread_every=self.site_reread_seconds,
        )

    @property
    def polling_rules(self) -> PollingRules:
        return PollingRules(
            min_period=self.min_period,
            max_period=self.max_period,
            default_floor=self.default_floor,
            earned_floor=self.earned_floor,
            patience=self.patience,
            dead_after=self.dead_after,
            tells_unlisted=self.tells_unlisted,
        )

    @property
    def tells_unlisted(self) -> bool:
        return self.unlisted == "told"

    @property
    def lengths(self) -> Lengths:
        return Lengths(topic=self.longest_topic, callback=self.longest_callback)

    @property
    def retention(self) -> Retention:
        return Retention(
            soft_age=self.log_retention_seconds,
            soft_count=self.log_retention_count,
            hard_age=self.log_limit_seconds,
            hard_count=self.log_limit_count,
        )

    @property
    def database_path(self) -> Path:
        return Path(self.database.partition(":")[2])


_OWN = set(vars(Settings)["__slots__"])

SETTINGS: tuple[Setting, ...] = tuple(
    Setting(
        field=each.name,
        shown_default=each.metadata["shown"],
        help=each.metadata["help"],
        read=each.metadata["read"],
        is_secret=each.metadata["is_secret"],
    )
    # Those of one part of the hub come last.
    for each in sorted(fields(Settings), key=lambda each: each.name not in _OWN)
)
