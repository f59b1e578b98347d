"""The settings of collections for crawlers (SCP), this hub's and others'."""

from __future__ import annotations

from dataclasses import dataclass

from hub.config_fields import setting
from hub.config_readers import DAY, language, one_of, seconds


@dataclass(frozen=True, kw_only=True)
class ScpSettings:
    """Of collections: when they are built, how they are made, how they are read."""

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
