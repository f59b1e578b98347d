"""All settings: what the hub is told from outside, and how it is read.

Each setting is one field of `Settings`, with its default, the reader of its text and
its help. The variable (``FANFARE_PORT``), the option of ``serve`` (``--port``) and the
row of docs/reference/settings.md are derived from the field, in the order of the
fields.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from hub.core.disk_limits import ByteLimits
from hub.core.schedule.poll_period import PollingRules
from hub.core.sites.site_bounds import SiteBounds
from hub.runtime.setting_readers import (
    DAY,
    Addresses,
    database,
    days_or_all,
    directory,
    hosts,
    language,
    line,
    networks,
    one_of,
    origin_url,
    origins,
    path_prefixes,
    seconds,
    some_of,
    text_file,
    whole,
)
from protocols.openfeeder.write.content_queries import AuthorDisplay, PageType
from protocols.superfeedr.parameters import DEFAULT_LENGTHS, Lengths
from protocols.urls import is_public_url
from protocols.websub.callbacks import LONGEST_URL
from protocols.websub.websub_parameters import (
    LONGEST_LEASE,
    SECRET_OVERLAP,
    SHORTEST_LEASE,
)
from storage.database_names import is_on_server, name_location
from storage.records import AuditRetention, Retention

PREFIX: Final = "FANFARE_"
NOT_SETTINGS: Final = frozenset({"FANFARE_FAILPOINT"})
"""Variables with our prefix that only tests use."""
ANALYTICS_NEEDS: Final = {
    "umami": ("openfeeder_analytics_url", "openfeeder_analytics_site"),
    "ga4": ("openfeeder_analytics_site", "openfeeder_analytics_secret"),
}
"""The settings that each analytics service needs."""

_LONGEST_REASON = 500
_PASSWORD = re.compile(r"(?<=://)[^\s/]*@")
_PASSWORD_IN_QUERY = re.compile(r"(?<=password=)[^\s&]*")
_WEEK = 7 * DAY
_RULES = PollingRules()
_SITES = SiteBounds()
DEFAULT: Final = "default"
"""The source of a setting that was not given."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How one field of `Settings` is read and described."""

    field: str
    shown_default: str
    help: str
    read: Callable[[str], object]
    is_secret: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.field.upper()

    @property
    def option(self) -> str:
        return "--" + self.field.replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSetting:
    """A setting as somebody gave it: the variable or option, and its text. The text of
    a secret is not kept."""

    field: str
    source: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingReport:
    """A setting for people. ``value`` is "" for a secret, and if there is neither a
    value nor a default."""

    name: str  # the variable
    option: str
    value: str
    default: str
    source: str  # `DEFAULT`, or the variable or option that gave it
    help: str
    is_secret: bool


def setting(
    default: T,
    read: Callable[[str], T],
    help: str,
    *,
    shown: str | None = None,
    is_secret: bool = False,
) -> T:
    """Declare a field of `Settings`; ``shown`` is its default as people write it."""
    metadata = {
        "read": read,
        "help": help,
        "shown": _written(default) if shown is None else shown,
        "is_secret": is_secret,
    }
    return field(default=default, metadata=metadata)


def _written(default: object) -> str:
    if default in ("", ()):
        return "none"
    return f"{default:.15g}" if isinstance(default, float) else str(default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a hub, grouped as the reference lists them."""

    database: str = setting(
        "",
        database,
        "The database: a file of SQLite, or postgresql://USER@HOST/DATABASE. The"
        " encryption key and the admin token are kept beside the file.",
        shown="sqlite:~/.local/state/fanfare/fanfare.db, or sqlite:data/fanfare.db"
        " if that exists",
    )
    state_dir: str = setting(
        "",
        directory,
        "The directory of what a hub on PostgreSQL keeps on its own machine: the"
        " encryption key, the admin token, collections.",
        shown="~/.local/state/fanfare/postgresql",
    )
    host: str = setting(
        "127.0.0.1",
        line,
        "The address to listen on.",
    )
    port: int = setting(
        8080,
        whole(0, 65_535),
        "The port to listen on; 0 picks a free one.",
    )
    public_url: str = setting(
        "",
        origin_url,
        "The URL under which others reach this hub; all its own links begin with it.",
        shown="http://localhost:PORT",
    )
    admin_token: str = setting(
        "",
        line,
        "The token of the administration API.",
        shown="generated, in the file admin-token beside the database",
        is_secret=True,
    )
    allow_networks: tuple[Addresses, ...] = setting(
        (),
        networks,
        "Private networks that the hub may connect to, for feeds, callbacks and hubs."
        " Requests to them are not paced.",
    )
    allow_topic_networks: tuple[Addresses, ...] = setting(
        (),
        networks,
        "Private networks that the hub may connect to, for fetching feeds only.",
    )
    allow_callback_networks: tuple[Addresses, ...] = setting(
        (),
        networks,
        "Private networks that the hub may connect to, for callbacks only.",
    )
    allow_hub_networks: tuple[Addresses, ...] = setting(
        (),
        networks,
        "Private networks that the hub may connect to, for other people's hubs only.",
    )
    blocked_hosts: tuple[str, ...] = setting(
        (),
        hosts,
        "Hosts from which no feed or page is fetched, including their subdomains.",
    )
    robots: str = setting(
        "off",
        one_of("off", "on"),
        "on: do not fetch feeds that their site's robots.txt disallows. off: ignore"
        " robots.txt.",
    )

    # The open hub and live streams.
    open_hub: str = setting(
        "known",
        one_of("off", "known", "any"),
        "Who may subscribe at /hub without a token. off: nobody; known: to public"
        " topics and to those that name this hub; any: to any topic.",
    )
    min_lease: int = setting(
        SHORTEST_LEASE,
        whole(1, LONGEST_LEASE),
        "The shortest lease of a subscription at /hub, in seconds; shorter ones are"
        " extended.",
    )
    longest_topic: int = setting(
        DEFAULT_LENGTHS.topic,
        whole(1, LONGEST_URL),
        "The longest topic accepted at /, in characters.",
    )
    longest_callback: int = setting(
        DEFAULT_LENGTHS.callback,
        whole(1, LONGEST_URL),
        "The longest callback accepted at /, in characters.",
    )
    open_stream: str = setting(
        "on",
        one_of("on", "off"),
        "on: live connections to public topics need no token. off: they do.",
    )
    stream_connections: int = setting(
        10_000,
        whole(0, 1_000_000),
        "The number of live connections that may be open at the same time.",
    )
    stream_share: int = setting(
        25,
        whole(1, 100),
        "The percentage of live connections that one address may hold without a"
        " token. An account may hold twice as many, the operator all.",
    )
    contact: str = setting(
        "",
        line,
        "A URL or mail address that publishers see in the User-Agent.",
    )

    # Polling, and sites that are read by many requests.
    min_period: float = setting(
        _RULES.min_period,
        seconds(1, _WEEK),
        "The shortest time between two polls of a feed, in seconds.",
    )
    max_period: float = setting(
        0.0,
        seconds(0, 4 * _WEEK),
        "The longest time between two polls of a feed, in seconds, whatever its"
        " floor. 0: an hour if its server answers 304, three hours otherwise.",
    )
    default_floor: float = setting(
        _RULES.default_floor,
        seconds(1, _WEEK),
        "The shortest period of a feed that answers 304 and is asleep, in seconds."
        " Three times as much for a document of 1 MB or more without 304.",
    )
    earned_floor: float = setting(
        _RULES.earned_floor,
        seconds(1, _WEEK),
        "The shortest period of a feed that is awake or does not answer 304, in"
        " seconds. Twice as much for a document of 256 kB or more without 304.",
    )
    patience: float = setting(
        _RULES.patience,
        seconds(1, _WEEK),
        "The initial price of a poll, in entry-seconds of waiting.",
    )
    poll_budget: float = setting(
        0.0,
        seconds(0, 10_000),
        "Polls a second for all feeds together. 0: 48 a day for each feed, on average.",
    )
    upstream: str = setting(
        "auto",
        one_of("auto", "on", "off"),
        "on: subscribe to feeds at the hubs they name, which then push to this hub."
        " off: only poll. auto: on if the public URL is not a private address.",
    )
    unused_hubs: tuple[str, ...] = setting(
        (),
        hosts,
        "Hosts of other people's hubs that are not used, including their subdomains:"
        " the feeds that name them are polled.",
    )
    backup_period: float = setting(
        _RULES.backup_period,
        seconds(1, 4 * _WEEK),
        "The shortest time between two polls of a feed that its hub reliably pushes,"
        " in seconds.",
    )
    dead_after: float = setting(
        _RULES.dead_after,
        seconds(1, 52 * _WEEK),
        "The time after which a feed that answers nothing but 404 is no longer"
        " polled, in seconds.",
    )
    entries_of_day: int = setting(
        _RULES.entries_of_day,
        whole(1, 10_000_000),
        "The number of new entries of one feed that are sent in a day (UTC). Further"
        " ones wait for the next day.",
    )
    bytes_of_day: int = setting(
        _RULES.bytes_of_day,
        whole(1, 100 * 1024**3),
        "Bytes of new and changed entries of one feed, as JSON, that are sent in a"
        " day (UTC). The entry that exceeds them is sent; further ones wait for the"
        " next day.",
    )
    poll_concurrency: int = setting(
        64,
        whole(1, 1_000),
        "The number of feeds fetched at the same time.",
    )
    list_seconds: float = setting(
        3_600.0,
        seconds(60, 4 * _WEEK),
        "The shortest time between two readings of a watched list, in seconds.",
    )
    site_requests: int = setting(
        _SITES.requests,
        whole(50, 100_000),
        "The number of requests in one visit to a site that takes many; the rest"
        " follows in later visits.",
    )
    site_seconds: float = setting(
        _SITES.seconds,
        seconds(1, 3_600),
        "The longest visit to such a site, in seconds.",
    )
    site_bytes: int = setting(
        _SITES.bytes,
        whole(1, 100 * 1024**3),
        "Bytes that one visit to such a site may read.",
    )
    site_entries: int = setting(
        _SITES.entries,
        whole(1, 10_000_000),
        "The number of new and changed entries taken in one visit to such a site.",
    )
    site_entries_of_day: int = setting(
        _SITES.entries_of_day,
        whole(1, 10_000_000),
        "The number of new and changed entries of such a site that are sent in a day"
        " (UTC).",
    )
    site_walk_seconds: float = setting(
        _SITES.walk_every,
        seconds(1, 4 * _WEEK),
        "The time between two full walks of a site that reports its changes, in"
        " seconds.",
    )
    site_reread_seconds: float = setting(
        _SITES.reread_every,
        seconds(1, 52 * _WEEK),
        "The time between two readings of every page of a site that may not report"
        " all changes, in seconds.",
    )

    # Deliveries, and what is stored and told.
    delivery_concurrency: int = setting(
        512,
        whole(1, 5_000),
        "The number of deliveries in flight at the same time.",
    )
    secret_overlap: int = setting(
        SECRET_OVERLAP,
        whole(0, LONGEST_LEASE),
        "How long the former secret of a subscription still signs after a change, in"
        " seconds.",
    )
    sanitize: str = setting(
        "off",
        one_of("off", "on"),
        "on: clean the content of new and changed entries so that it is safe to show"
        " in a page. off: pass it on unchanged.",
    )
    unlisted: str = setting(
        "told",
        one_of("told", "withheld"),
        "What happens to entries that their publisher wants kept out of public lists."
        " told: subscribers of the feed get them; withheld: nobody does.",
    )
    porn_words: str = setting(
        "",
        text_file,
        "A file of words and phrases, one a line, from which the porn rank is"
        " computed.",
    )

    # Collections for crawlers (SCP): how they are built, and how others' are read.
    scp: str = setting(
        "on",
        one_of("on", "off"),
        "on: build collections of all public entries for crawlers (SCP). off: do not.",
    )
    scp_delta_seconds: float = setting(
        3_600.0,
        seconds(60, 7 * DAY),
        "The time between two collections of changes, in seconds.",
    )
    scp_snapshot_seconds: float = setting(
        DAY,
        seconds(60, 52 * 7 * DAY),
        "The time between two complete collections, in seconds.",
    )
    scp_compression: str = setting(
        "gzip",
        one_of("gzip", "zstd"),
        "The compression of collections, gzip or zstd. A collection that would shrink"
        " by more than 90:1 is not compressed.",
    )
    scp_language: str = setting(
        "en",
        language,
        "The language of pages whose entry and feed name none, such as en or de-CH.",
    )
    scp_checksum: str = setting(
        "lenient",
        one_of("lenient", "strict", "off"),
        "How the checksum of other people's collections is verified. lenient: by any"
        " method that publishers are known to use; strict: by the specification's;"
        " off: not at all.",
    )

    # The log of records: a late subscriber is waited for by its retention, not by its
    # limits.
    log_retention_seconds: float = setting(
        30 * DAY,
        seconds(60, 3_650 * DAY),
        "The age at which log records are deleted, in seconds, unless a retrying"
        " subscription still needs them.",
    )
    log_retention_count: int = setting(
        1_000_000,
        whole(100, 1_000_000_000),
        "The number of log records kept; more only while a retrying subscription"
        " needs them.",
    )
    log_retention_bytes: int = setting(
        8 * 1024**3,
        whole(16 * 1024**2, 2**50),
        "Bytes that a database of SQLite may take before the oldest records are"
        " deleted, unless a retrying subscription still needs them. Records of the last"
        " day are kept.",
    )
    log_limit_seconds: float = setting(
        60 * DAY,
        seconds(60, 3_650 * DAY),
        "The age at which log records are deleted in any case, in seconds.",
    )
    log_limit_count: int = setting(
        2_000_000,
        whole(100, 1_000_000_000),
        "The number of log records kept in any case; older ones are deleted even if"
        " they are still needed.",
    )

    log_limit_bytes: int = setting(
        16 * 1024**3,
        whole(16 * 1024**2, 2**50),
        "Bytes that a database of SQLite may take before the oldest records are deleted"
        " even if they are still needed. Records of the last day are kept.",
    )

    search_days: float = setting(
        math.inf,
        days_or_all(3_650),
        "Entries of so many days, by their dates, can be searched for; 0: none, and no"
        " search index is kept.",
        shown="all",
    )

    # The audit trail: who did what.
    audit_seconds: float = setting(
        90 * DAY,
        seconds(DAY, 3_650 * DAY),
        "How long the audit trail is kept, in seconds.",
    )
    audit_count: int = setting(
        100_000,
        whole(1_000, 10_000_000),
        "The number of records of the audit trail that are kept of administrators, and"
        " as many of everybody else.",
    )

    # Backups by the clock.
    backup_dir: str = setting(
        "",
        directory,
        "The directory for scheduled backups of a database of SQLite; each hub needs"
        " its own. Without it there are none.",
    )
    backup_seconds: float = setting(
        DAY,
        seconds(60, 52 * _WEEK),
        "The time between two scheduled backups, in seconds.",
    )
    backups_kept: int = setting(
        7,
        whole(1, 10_000),
        "The number of scheduled backups kept; older ones are deleted.",
    )

    # The HTTP server, and log lines.
    rate_limit_token: int = setting(
        6_000,
        whole(0, 10_000_000),
        "Requests a minute with one token. 0: no limit.",
    )
    rate_limit_address: int = setting(
        6_000,
        whole(0, 10_000_000),
        "Requests a minute from one address without a token. 0: no limit.",
    )
    api_origins: tuple[str, ...] = setting(
        (),
        origins,
        "Origins whose pages may use /api with a token (CORS), separated by commas."
        " *: all.",
    )
    trusted_proxies: tuple[Addresses, ...] = setting(
        (),
        networks,
        "Networks of proxies whose X-Forwarded-For is trusted.",
    )
    keep_alive: int = setting(
        75,
        whole(5, 3_600),
        "How long an idle connection is kept open after an answer, in seconds.",
    )
    log_level: str = setting(
        "info",
        one_of("debug", "info", "warning", "error"),
        "The lowest level that is logged: debug, info, warning or error.",
    )
    log_format: str = setting(
        "console",
        one_of("console", "json"),
        "The format of log lines: console or json.",
    )
    access_log: str = setting(
        "off",
        one_of("off", "on"),
        "on: log each request to the hub, without its query. off: do not.",
    )

    traces: str = setting(
        "off",
        one_of("off", "otlp", "console"),
        "otlp: send traces by OpenTelemetry, set up by its OTEL_ variables; needs the"
        " extra opentelemetry. console: print them. off: make none.",
    )

    # OpenFeeder, whose specification (10) names the gatekeeper's options.
    openfeeder: str = setting(
        "on",
        one_of("on", "off"),
        "on: publish public entries by OpenFeeder. off: do not.",
    )
    openfeeder_name: str = setting(
        "",
        line,
        "The name of the site in the discovery document.",
        shown="Feeds at the host of the public URL",
    )
    openfeeder_key: str = setting(
        "",
        line,
        "The key (apiKey) that readers must send as a Bearer token. Without it none"
        " is needed.",
        is_secret=True,
    )
    openfeeder_excluded_paths: tuple[str, ...] = setting(
        (),
        path_prefixes,
        "Pages whose path begins like this are not shown, such as /checkout,/cart.",
    )
    openfeeder_excluded_types: tuple[str, ...] = setting(
        (),
        some_of(*PageType),
        f"Types of pages that are not shown: any of {', '.join(PageType)}.",
    )
    openfeeder_authors: str = setting(
        "name",
        one_of(*AuthorDisplay),
        "Whether the names of authors are shown: name or hidden.",
    )
    openfeeder_tombstone_seconds: float = setting(
        90 * DAY,
        seconds(60, 3_650 * DAY),
        "How long readers are told that a page was deleted, in seconds.",
    )
    openfeeder_analytics: str = setting(
        "none",
        one_of("none", "log", "umami", "ga4"),
        "Where requests of bots are reported: none, log, umami or ga4.",
    )
    openfeeder_analytics_url: str = setting(
        "",
        origin_url,
        "The base URL of Umami. For GA4 only to replace Google's.",
    )
    openfeeder_analytics_site: str = setting(
        "",
        line,
        "The website id of Umami, or the measurement id of GA4.",
    )
    openfeeder_analytics_secret: str = setting(
        "",
        line,
        "The API secret of GA4, or a token of Umami.",
        is_secret=True,
    )
    given: tuple[GivenSetting, ...] = ()
    """Where those values are from that are not the defaults."""

    @property
    def polling_rules(self) -> PollingRules:
        longest = self.max_period
        return PollingRules(
            min_period=self.min_period,
            max_period=longest or max(_RULES.max_period, self.min_period),
            promised=longest or _RULES.promised,
            promised_without_304=longest or _RULES.promised_without_304,
            default_floor=self.default_floor,
            earned_floor=self.earned_floor,
            patience=self.patience,
            dead_after=self.dead_after,
            entries_of_day=self.entries_of_day,
            bytes_of_day=self.bytes_of_day,
            backup_period=self.backup_period,
            tells_unlisted=self.tells_unlisted,
        )

    @property
    def topic_networks(self) -> tuple[Addresses, ...]:
        return self.allow_networks + self.allow_topic_networks

    @property
    def callback_networks(self) -> tuple[Addresses, ...]:
        return self.allow_networks + self.allow_callback_networks

    @property
    def hub_networks(self) -> tuple[Addresses, ...]:
        return self.allow_networks + self.allow_hub_networks

    @property
    def takes_pushes(self) -> bool:
        if self.upstream == "auto":
            return is_public_url(self.public_url)
        return self.upstream == "on"

    @property
    def tells_unlisted(self) -> bool:
        return self.unlisted == "told"

    @property
    def overlap_of_secrets(self) -> timedelta:
        return timedelta(seconds=self.secret_overlap)

    @property
    def lengths(self) -> Lengths:
        return Lengths(topic=self.longest_topic, callback=self.longest_callback)

    @property
    def is_on_server(self) -> bool:
        """Whether the database is one of PostgreSQL."""
        return is_on_server(self.database)

    @property
    def local_path(self) -> Path:
        """The path from which the names of all files on this machine are derived: the
        file of SQLite, or, if the database is on a server, a path in `state_dir`."""
        if self.is_on_server:
            return self.state_path
        return Path(self.database.partition(":")[2])

    @property
    def state_path(self) -> Path:
        """The same for whichever database on a server."""
        return Path(self.state_dir, "fanfare")

    @property
    def database_name(self) -> str:
        """The name of the database for people, without a password."""
        if self.is_on_server:
            return name_location(self.database)
        return str(self.local_path.absolute())

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
    def byte_limits(self) -> ByteLimits | None:
        """The limits on the size of the log; None on a server, where deleting does not
        make the database smaller."""
        if self.is_on_server:
            return None
        return ByteLimits(soft=self.log_retention_bytes, hard=self.log_limit_bytes)

    @property
    def audit_retention(self) -> AuditRetention:
        return AuditRetention(seconds=self.audit_seconds, count=self.audit_count)

    @property
    def retention(self) -> Retention:
        return Retention(
            soft_age=self.log_retention_seconds,
            soft_count=self.log_retention_count,
            hard_age=self.log_limit_seconds,
            hard_count=self.log_limit_count,
        )


SETTINGS: Final[tuple[Setting, ...]] = tuple(
    Setting(
        field=each.name,
        shown_default=each.metadata["shown"],
        help=each.metadata["help"],
        read=each.metadata["read"],
        is_secret=each.metadata["is_secret"],
    )
    for each in fields(Settings)
    if each.metadata
)


class SettingError(Exception):
    """A setting has a value that cannot be used; names it and what was expected."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


DATABASE_HERE: Final = Path("data", "fanfare.db")
"""The default database if it exists: one in the current directory."""


def default_database(environ: Mapping[str, str]) -> Path:
    """The database where none is named: the same from every directory, unless there is
    one in ``data/`` here.
    """
    if DATABASE_HERE.exists():
        return DATABASE_HERE
    return state_directory(environ) / "fanfare.db"


def state_directory(environ: Mapping[str, str]) -> Path:
    """XDG Base Directory Specification: state is kept in $XDG_STATE_HOME, an absolute
    path, else in ~/.local/state."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError:  # nobody's home: a service without a user
            return DATABASE_HERE.parent
    return state / "fanfare"


def load_settings(
    environ: Mapping[str, str], options: Mapping[str, str | None] | None = None
) -> Settings:
    """Read all settings; an option wins over the environment.

    Raises `SettingError` for the first value that cannot be used.
    """
    values: dict[str, object] = {}
    given = []
    for each in SETTINGS:
        source, raw = _raw_value(each, environ, options or {})
        if raw is None:
            continue
        try:
            values[each.field] = each.read(raw)
        except ValueError as error:
            shown = "" if each.is_secret else f", not {raw!r}"
            reason = _without_passwords(f"{error}{shown}")
            raise SettingError(source, reason[:_LONGEST_REASON]) from None
        text = "" if each.is_secret else _without_passwords(raw)
        given.append(GivenSetting(field=each.field, source=source, text=text))
    values.setdefault("database", f"sqlite:{default_database(environ)}")
    values.setdefault("state_dir", str(state_directory(environ) / "postgresql"))
    values["given"] = tuple(given)
    settings = Settings(**values)  # type: ignore[arg-type]  # each came from its reader
    _check_together(settings)
    return settings


def describe_settings(settings: Settings) -> list[SettingReport]:
    """All settings, in the order of the reference."""
    given = {each.field: each for each in settings.given}
    return [_report(each, given.get(each.field)) for each in SETTINGS]


def _report(each: Setting, given: GivenSetting | None) -> SettingReport:
    return SettingReport(
        name=each.variable,
        option=each.option,
        value=given.text if given else each.shown_default,
        default=each.shown_default,
        source=given.source if given else DEFAULT,
        help=each.help,
        is_secret=each.is_secret,
    )


def _raw_value(
    each: Setting, environ: Mapping[str, str], options: Mapping[str, str | None]
) -> tuple[str, str | None]:
    """Where a setting's value comes from, and the value; None means the default."""
    option = options.get(each.field)
    if option is not None:
        return each.option, option
    if each.is_secret and (path := environ.get(f"{each.variable}_FILE")):
        return f"{each.variable}_FILE", _secret_from(f"{each.variable}_FILE", path)
    return each.variable, environ.get(each.variable) or None


def _without_passwords(reason: str) -> str:
    """The reason without passwords: people put URLs where none belong."""
    return _PASSWORD_IN_QUERY.sub("…", _PASSWORD.sub("…@", reason))


def _secret_from(name: str, path: str) -> str:
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(name, f"cannot read {path}: {error}") from None
    if not secret:
        raise SettingError(name, f"expected a secret in {path}, which is empty")
    return secret


def _check_together(settings: Settings) -> None:
    """Refuse pairs of values that contradict each other."""
    ordered = (
        ("min_period", "max_period"),
        ("log_retention_seconds", "log_limit_seconds"),
        ("log_retention_count", "log_limit_count"),
        ("log_retention_bytes", "log_limit_bytes"),
    )
    for low, high in ordered:
        highest = getattr(settings, high)
        if highest and getattr(settings, low) > highest:
            name = PREFIX + low.upper()
            raise SettingError(name, f"expected no more than {PREFIX}{high.upper()}")
    chosen = settings.openfeeder_analytics
    for needed in ANALYTICS_NEEDS.get(chosen, ()):
        if not getattr(settings, needed):
            name = PREFIX + needed.upper()
            raise SettingError(name, f"expected a value, for analytics by {chosen}")


def unknown_variables(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Variables with our prefix that are no setting, each with the likely one."""
    known = {each.variable for each in SETTINGS}
    known |= {f"{each.variable}_FILE" for each in SETTINGS if each.is_secret}
    strange = sorted(
        name
        for name in environ
        if name.startswith(PREFIX) and name not in known | NOT_SETTINGS
    )
    return [(name, _likely(name, sorted(known))) for name in strange]


def _likely(name: str, known: list[str]) -> str:
    """The known variable that was probably meant, or ""."""
    short = [each.removeprefix(PREFIX) for each in known]
    found = difflib.get_close_matches(name.removeprefix(PREFIX), short, 1, 0.7)
    return PREFIX + found[0] if found else ""
