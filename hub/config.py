"""Settings: what the hub is told from outside.

Every setting is a field of `Settings` with its default, its reader and its help in one
place; the variable (``FANFARE_PORT``), the ``serve`` option (``--port``) and the
reference table are made from that. `hub.environment` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from inspect import get_annotations
from pathlib import Path

from hub.config_fields import Setting, setting
from hub.config_log import LogSettings
from hub.config_openfeeder import OpenFeederSettings
from hub.config_polling import PollingSettings
from hub.config_readers import (
    Addresses,
    database,
    hosts,
    line,
    networks,
    one_of,
    origin_url,
    text_file,
    whole,
)
from hub.config_scp import ScpSettings
from hub.core.cadence import PollingRules
from protocols.public_urls import is_public_url
from protocols.superfeedr.parameters import DEFAULT_LENGTHS, Lengths
from protocols.websub.callbacks import LONGEST_URL
from protocols.websub.leases import LONGEST_LEASE, SECRET_OVERLAP, SHORTEST_LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(OpenFeederSettings, LogSettings, ScpSettings, PollingSettings):
    """All settings of a hub; its parts have no slots, for only one of them could."""

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
    allow_hub_networks: tuple[Addresses, ...] = setting(
        (), networks, "the same, for hubs that publishers name only", shown="none"
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
    stream_share: int = setting(
        25,
        whole(1, 100),
        "percent of these that one address may hold without a token; an account may"
        " hold twice as many, the operator all",
    )
    contact: str = setting(
        "",
        line,
        "a URL or mail address shown to publishers in the User-Agent",
        shown="none",
    )
    delivery_concurrency: int = setting(
        256, whole(1, 5_000), "deliveries under way at the same time"
    )
    secret_overlap: int = setting(
        SECRET_OVERLAP,
        whole(0, LONGEST_LEASE),
        "seconds for which the secret that a subscription had before signs as well",
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
    keep_alive: int = setting(
        75,
        whole(5, 3_600),
        "seconds after an answer in which a connection may bring another request",
    )
    log_level: str = setting(
        "info", one_of("debug", "info", "warning", "error"), "the least that is logged"
    )
    log_format: str = setting(
        "console", one_of("console", "json"), "how log lines look"
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
            entries_of_day=self.entries_of_day,
            bytes_of_day=self.bytes_of_day,
            backup_period=self.backup_period,
            tells_unlisted=self.tells_unlisted,
        )

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
    def database_path(self) -> Path:
        return Path(self.database.partition(":")[2])


_OWN = get_annotations(Settings).keys()

SETTINGS: tuple[Setting, ...] = tuple(
    Setting(
        field=each.name,
        shown_default=each.metadata["shown"],
        help=each.metadata["help"],
        read=each.metadata["read"],
        is_secret=each.metadata["is_secret"],
    )
    # Those of the parts come last.
    for each in sorted(fields(Settings), key=lambda each: each.name not in _OWN)
)
