"""Which registrable domain, and so which owner, a host name belongs to."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import unquote

import idna

OF_COUNTRIES: Final = re.compile(
    "ac|ad|co|com|ed|edu|gc|go|gob|gov|gr|gub|gv|id|ind|k12|lg|ltd|mil|ne|net|nhs|nom"
    "|or|org|plc|pp|sch|web"
)
"""Second labels under which country registries register names.

Not every short label is one: otherwise the owner of ``q7z.me`` would have a separate
zone for each name below it.
"""

_SHARED_NAMES: Final = """
000webhostapp.com amplifyapp.com appspot.com azurestaticapps.net azurewebsites.net
bearblog.dev beehiiv.com blog.jp blogger.com blogsky.com blogspot.com bsky.social
buttondown.email buzzsprout.com canalblog.com captivate.fm cargo.site carrd.co
cloudfront.net codeberg.page deno.dev dreamwidth.org exblog.jp fc2.com
firebaseapp.com fireside.fm fly.dev free.fr freeshell.org ghost.io gitbook.io
github.dev github.io githubpreview.dev gitlab.io glitch.me hashnode.dev
hatenablog.com hatenablog.jp hatenadiary.com hatenadiary.jp herokuapp.com home.blog
itch.io jimdofree.com jimdosite.com jugem.jp libsyn.com listed.to livejournal.com
mataroa.blog medium.com micro.blog myshopify.com mystrikingly.com neocities.org
netlify.app netlify.com nfshost.com ngrok.io notion.site onrender.com over-blog.com
overblog.com pages.dev pika.page podbean.com podigee.io posthaven.com prose.sh
r2.dev railway.app readthedocs.io render.com repl.co replit.app seesaa.net
simplecast.com sourceforge.io sourceforge.net spreaker.com squarespace.com
strikingly.com substack.com surge.sh svbtle.com tilda.ws tistory.com transistor.fm
translate.goog tripod.com tumblr.com typepad.com ucoz.com ucoz.ru vercel.app web.app
webflow.io weblog.lol webnode.com weebly.com wixsite.com wordpress.com workers.dev
wpcomstaging.com wpengine.com write.as writeas.com yolasite.com zendesk.com
"""
SHARED: Final = frozenset(_SHARED_NAMES.split())
"""Domains whose owners let anybody have names below them.

The Public Suffix List has more, but the hub does not include it: names below a domain
that is missing here count as belonging to one owner.
"""

_AUTHORITY: Final = re.compile(r"(https?)://([^/?#\\]*)", re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


def address_of(name: str) -> IPv4Address | IPv6Address | None:
    """The IP address that a host is written as; None for a name."""
    try:
        return ip_address(name.strip("[]"))
    except ValueError:
        return None


@lru_cache(4_096)
def site_of(url: str) -> tuple[str, str]:
    """The host of a web URL and its port; the port is "" if it is the scheme's default.

    The host is in lower case, in punycode, and without ``www.``: with and without it is
    one site by convention. ("", "") if it is not a web URL.
    """
    found = _AUTHORITY.match(url)
    if found is None:
        return "", ""
    scheme, authority = found[1].lower(), unquote(found[2]).lower()
    address = authority.rpartition("@")[2]
    head, bracket, tail = address.rpartition("]")
    name, _, port = (tail if bracket else address).partition(":")
    host = _in_ascii((head + bracket + name).rstrip(".")).removeprefix("www.")
    return host, "" if port == _DEFAULT_PORTS[scheme] else port


def _in_ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return idna.encode(host, uts46=True).decode()
    except UnicodeError:
        return host


@lru_cache(4_096)
def registrable_domain(host: str) -> str:
    """The domain that one owner has registered.

    The last two labels of a name, or three where a registry owns the last two
    (``example.co.uk``) or anybody may have names below them (``example.github.io``). An
    IP address or a name of one label is returned unchanged.
    """
    if address_of(host) is not None:
        return host
    labels = host.split(".")
    count = 2
    if is_registry(labels):
        count = 3
    if ".".join(labels[-count:]) in SHARED:
        count += 1
    return ".".join(labels[-count:])


@lru_cache(4_096)
def zone_of(host: str) -> str:
    """Roughly one owner's part of DNS, for limits that cannot be evaded with more
    names.

    The last two labels of a name, or three where a registry owns the last two
    (``example.co.uk``). The owners of names below a shared domain are not
    distinguished. An IP address is its own zone.
    """
    name = host.lower().rstrip(".")
    if address_of(name) is not None:
        return name
    labels = name.rsplit(".", 3)
    return ".".join(labels[-3:] if is_registry(labels) else labels[-2:])


def is_registry(labels: list[str]) -> bool:
    """Whether the last two labels of a longer name belong to a country's registry."""
    return (
        len(labels) > 2
        and len(labels[-1]) == 2
        and OF_COUNTRIES.fullmatch(labels[-2]) is not None
    )
