"""The settings of what is served by OpenFeeder."""

from __future__ import annotations

from dataclasses import dataclass

from hub.config_fields import setting
from hub.config_readers import (
    DAY,
    line,
    one_of,
    origin_url,
    path_prefixes,
    seconds,
    some_of,
)
from protocols.openfeeder.serving.choices import AuthorDisplay, PageType

ANALYTICS_NEEDS = {
    "umami": ("openfeeder_analytics_url", "openfeeder_analytics_site"),
    "ga4": ("openfeeder_analytics_site", "openfeeder_analytics_secret"),
}
"""What must be set besides, for each place that is told."""


@dataclass(frozen=True, kw_only=True)
class OpenFeederSettings:
    """OpenFeeder 10 names the four gatekeeper options."""

    openfeeder: str = setting(
        "on",
        one_of("on", "off"),
        "whether public entries can be read by OpenFeeder",
    )
    openfeeder_name: str = setting(
        "",
        line,
        "the name of the site in the discovery document",
        shown="Feeds at the host of the public URL",
    )
    openfeeder_key: str = setting(
        "",
        line,
        "the key (apiKey) that readers must show as a Bearer token; none: no key",
        shown="none",
        is_secret=True,
    )
    openfeeder_excluded_paths: tuple[str, ...] = setting(
        (),
        path_prefixes,
        "beginnings of paths of pages that are not shown, such as /checkout,/cart",
        shown="none",
    )
    openfeeder_excluded_types: tuple[str, ...] = setting(
        (),
        some_of(*PageType),
        f"types of pages that are not shown: any of {', '.join(PageType)}",
        shown="none",
    )
    openfeeder_authors: str = setting(
        "name",
        one_of(*AuthorDisplay),
        "whether names of authors are shown or hidden",
    )
    openfeeder_tombstone_seconds: float = setting(
        90 * DAY,
        seconds(60, 3_650 * DAY),
        "how long readers are told that a page is gone",
        shown="7776000",
    )
    openfeeder_analytics: str = setting(
        "none",
        one_of("none", "log", "umami", "ga4"),
        "where requests of bots are counted",
    )
    openfeeder_analytics_url: str = setting(
        "",
        origin_url,
        "the base URL of Umami; of GA4 only to replace Google's",
        shown="none",
    )
    openfeeder_analytics_site: str = setting(
        "",
        line,
        "the website id of Umami, or the measurement id of GA4",
        shown="none",
    )
    openfeeder_analytics_secret: str = setting(
        "",
        line,
        "the API secret of GA4, or a token of Umami",
        shown="none",
        is_secret=True,
    )
