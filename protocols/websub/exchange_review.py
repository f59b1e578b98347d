"""What is right and wrong with the messages of WebSub, by the section that says so.

Each function reads one request or one answer, as a developer of a publisher, a hub or a
subscriber sees it on the wire. Names of headers are in lower case.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final

from lxml import etree
from msgspec import Struct

from protocols.feeds.element import Element
from protocols.feeds.feed_links import parse_page
from protocols.http import parse_link_header
from protocols.urls import resolve
from protocols.websub.signatures import ALGORITHMS, sign
from protocols.websub.verification import CHALLENGE
from protocols.websub.websub_parameters import LONGEST_SECRET
from protocols.xml_syntax import SAFE

MOST_LINKS: Final = 50
"""Links of one document that are looked at."""
Headers = Mapping[str, str]
Parameters = Mapping[str, str]


class RemarkLevel(StrEnum):
    GOOD = "good"
    NOTE = "note"
    BAD = "bad"


class Remark(Struct, frozen=True, kw_only=True):
    """A sentence on a message. ``section``: where WebSub says it; "": nowhere."""

    level: RemarkLevel
    text: str
    section: str = ""


class TopicLinks(Struct, frozen=True, kw_only=True):
    """What a topic names. ``is_header``: in its ``Link`` header, which comes first."""

    hubs: tuple[str, ...] = ()
    selves: tuple[str, ...] = ()
    is_header: bool = False


class SignatureCheck(Struct, frozen=True, kw_only=True):
    """How a signature is computed: HMAC of the body with the secret as the key.

    ``given`` is the header's value, ``expected`` what it should be; both as hexadecimal
    digits after the algorithm and ``=``.
    """

    algorithm: str
    body_bytes: int
    secret_bytes: int
    given: str
    expected: str

    @property
    def is_right(self) -> bool:
        return hmac.compare_digest(self.given.encode(), self.expected.encode())


def _good(text: str, section: str = "") -> Remark:
    return Remark(level=RemarkLevel.GOOD, text=text, section=section)


def _note(text: str, section: str = "") -> Remark:
    return Remark(level=RemarkLevel.NOTE, text=text, section=section)


def _bad(text: str, section: str = "") -> Remark:
    return Remark(level=RemarkLevel.BAD, text=text, section=section)


# --- discovery ---


def links_of_topic(url: str, headers: Headers, body: bytes) -> TopicLinks:
    """The hubs and the canonical address that an answer names, absolute.

    The header counts if it names a hub or an address; otherwise the document does.
    """
    links = parse_link_header(headers.get("link", ""), url)
    named = [(each.rel, each.href) for each in links if each.rel in ("hub", "self")]
    if named:
        return _topic_links(named, is_header=True)
    return _topic_links(_links_of_document(headers, body, url), is_header=False)


def _topic_links(named: Sequence[tuple[str, str]], *, is_header: bool) -> TopicLinks:
    hubs = dict.fromkeys(href for rel, href in named if rel == "hub")
    selves = dict.fromkeys(href for rel, href in named if rel == "self")
    return TopicLinks(hubs=tuple(hubs), selves=tuple(selves), is_header=is_header)


def _links_of_document(
    headers: Headers, body: bytes, url: str
) -> list[tuple[str, str]]:
    elements = islice(_link_elements(headers, body), MOST_LINKS)
    return [
        (relation, href)
        for each in elements
        for relation in (each.get("rel") or "").lower().split()
        if relation in ("hub", "self") and (href := resolve(each.get("href"), url))
    ]


def _link_elements(headers: Headers, body: bytes) -> Iterator[Element]:
    """The link elements of a feed itself, not of its entries, or of a page's head.

    A document with a document type, which could define entities, is read as a page,
    where these have no effect.
    """
    start = body[:1_000].lstrip().lower()
    is_marked = start.startswith((b"<?xml", b"<rss", b"<feed"))
    is_xml = "xml" in headers.get("content-type", "") or is_marked
    if not is_xml or b"<!DOCTYPE" in body:
        page = parse_page(body)
        heads = () if page is None else islice(page.iter("head"), 1)
        yield from (link for head in heads for link in head.iter("link"))
        return
    root = _xml_tree(body)
    if root is not None:
        yield from root.iterfind("{*}link")
        yield from root.iterfind("{*}channel/{*}link")


def _xml_tree(body: bytes) -> etree._Element | None:
    """The tree of a document; None if it has no element at all."""
    parser = etree.XMLParser(**SAFE, recover=True)
    try:
        root: etree._Element | None = etree.fromstring(body, parser)
    except etree.XMLSyntaxError:
        return None
    return root


def review_topic(url: str, status: int, links: TopicLinks) -> tuple[Remark, ...]:
    if 300 <= status < 400:
        return (_note(f"the topic answers {status}: it is elsewhere"),)
    if not 200 <= status < 300:
        return (_bad(f"the topic answers {status}: nothing can be discovered", "4"),)
    where = "the Link header" if links.is_header else "the document"
    found = [*_review_hubs(where, links), *_review_selves(url, where, links)]
    if not links.is_header and (links.hubs or links.selves):
        found.append(
            _note("there is no Link header; subscribers look there first", "4")
        )
    return tuple(found)


def _review_hubs(where: str, links: TopicLinks) -> Iterator[Remark]:
    if links.hubs:
        yield _good(f"{where} names the hub {', '.join(links.hubs)}", "4")
    else:
        yield _bad("no link with rel=hub: nobody learns where to subscribe", "4")


def _review_selves(url: str, where: str, links: TopicLinks) -> Iterator[Remark]:
    if not links.selves:
        yield _bad("no link with rel=self: a topic MUST name its own URL", "4")
    elif len(links.selves) > 1:
        yield _bad(f"{where} names several URLs with rel=self", "4")
    elif links.selves[0] == url:
        yield _good(f"{where} names the topic itself, {url}", "4")
    else:
        yield _note(
            f"{where} names {links.selves[0]} with rel=self: that is what to"
            f" subscribe to, not {url}",
            "4",
        )


# --- requests to a hub, and its answers ---


def review_hub_request(url: str, parameters: Parameters) -> tuple[Remark, ...]:
    """Remarks on a request to the hub at this URL."""
    if parameters.get("hub.mode") == "publish":
        return ()
    missing = [
        name
        for name in ("hub.callback", "hub.mode", "hub.topic")
        if not parameters.get(name)
    ]
    found = [_bad(f"{each} is missing", "5.1") for each in missing]
    secret = parameters.get("hub.secret", "")
    if len(secret.encode()) > LONGEST_SECRET:
        found.append(_bad("hub.secret MUST be less than 200 bytes", "5.1"))
    if secret and not url.startswith("https:"):
        found.append(_note("hub.secret SHOULD be sent over https only", "5.1"))
    lease = parameters.get("hub.lease_seconds", "1")
    if not (lease.isascii() and lease.isdigit() and int(lease[:20])):
        found.append(_bad("hub.lease_seconds MUST be a positive number", "5.1"))
    return tuple(found)


def review_hub_answer(mode: str, status: int, headers: Headers) -> tuple[Remark, ...]:
    """Remarks on a hub's answer; ``mode``: what the hub was asked for."""
    is_taken = 200 <= status < 300
    if mode == "publish":
        return (_review_ping(status, is_taken=is_taken),)
    if status == 202:
        return (_good(f"the hub accepts the request to {mode}", "5.1.2"),)
    if is_taken:
        text = f"answered {status}: a hub that accepts MUST answer 202"
        return (_bad(text, "5.1.2"),)
    if status in (307, 308):
        return (_review_redirect(status, headers),)
    found = [_bad(f"the hub refuses: {status}", "5.1.2")]
    if not headers.get("content-type", "").startswith("text/plain"):
        found.append(
            _note("an error SHOULD be described in the body as text/plain", "5.1.2")
        )
    return tuple(found)


def _review_ping(status: int, *, is_taken: bool) -> Remark:
    if is_taken:
        text = f"the hub takes the ping: {status}; WebSub leaves its form open"
        return _good(text, "6")
    return _bad(f"the hub does not take the ping: {status}", "6")


def _review_redirect(status: int, headers: Headers) -> Remark:
    target = headers.get("location", "")
    if not target:
        return _bad(f"{status} without Location: a hub MUST name the other one", "5.1")
    return _note(f"another hub is to be asked: {target}", "5.1")


# --- verification of intent ---


def review_question(parameters: Parameters, topic: str) -> tuple[Remark, ...]:
    """Remarks on a hub's question to a callback, or on its refusal. ``topic``: as it
    was in the request to the hub; "" if that is not known."""
    mode, asked = parameters.get("hub.mode", ""), parameters.get("hub.topic", "")
    if mode not in ("subscribe", "unsubscribe", "denied"):
        return (_bad("hub.mode is not subscribe, unsubscribe or denied", "5.3"),)
    found = [_review_topic_of_question(asked, topic)]
    if mode == "denied":
        reason = parameters.get("hub.reason", "") or "no reason given"
        found.append(_note(f"the hub denies the subscription: {reason}", "5.2"))
        return tuple(found)
    found.append(_review_challenge(parameters.get("hub.challenge", "")))
    lease = parameters.get("hub.lease_seconds", "")
    if mode == "subscribe" and not lease:
        found.append(_bad("hub.lease_seconds is missing", "5.3"))
    elif mode == "subscribe":
        found.append(_note(f"the hub grants {lease} seconds", "5.3"))
    return tuple(found)


def _review_topic_of_question(asked: str, topic: str) -> Remark:
    if not asked:
        return _bad("hub.topic is missing", "5.3")
    if topic and asked != topic:
        return _bad(f"hub.topic is {asked}, but {topic} was asked for", "5.3")
    return _good(f"the hub asks about {asked}", "5.3")


def _review_challenge(challenge: str) -> Remark:
    if not challenge:
        return _bad("hub.challenge is missing", "5.3")
    if not CHALLENGE.fullmatch(challenge):
        return _bad("hub.challenge has characters that it MUST NOT have", "5.3")
    return _good("hub.challenge has allowed characters only", "5.3")


def review_confirmation(
    mode: str, status: int, headers: Headers, body: bytes, challenge: str
) -> tuple[Remark, ...]:
    """Remarks on a callback's answer to a hub's question."""
    if mode == "denied":
        return (_note(f"the callback answers {status}; a hub does not mind", "5.2"),)
    if 300 <= status < 400:
        return (_bad(f"{status}: redirects are not followed, it counts as no", "5.3"),)
    if not 200 <= status < 300:
        return (_bad(f"the callback answers {status}: it does not confirm", "5.3.1"),)
    if body != challenge.encode():
        return (_bad(_difference(body, challenge), "5.3.1"),)
    found = [_good("the callback confirms: the body is the challenge", "5.3.1")]
    type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if type in ("text/html", "image/svg+xml", "application/xhtml+xml", ""):
        found.append(
            _bad(
                f"Content-Type is {type or 'missing'}: it MUST be a safe one, such as"
                " application/octet-stream",
                "5.3.1",
            )
        )
    if headers.get("x-content-type-options", "").lower() != "nosniff":
        found.append(_bad("X-Content-Type-Options: nosniff is missing", "5.3.1"))
    return tuple(found)


def _difference(body: bytes, challenge: str) -> str:
    if body.strip() == challenge.encode():
        return "the body is the challenge with blanks or line breaks around it"
    if not body:
        return "the body is empty: it must be the challenge"
    if challenge.encode() in body:
        return "the body has more than the challenge"
    return "the body is not the challenge"


# --- notifications ---


def check_signature(header: str, secret: str, body: bytes) -> SignatureCheck | None:
    """Compare a signature with the right one; None for a header without a known
    algorithm, or without a secret."""
    algorithm, _, digest = header.strip().partition("=")
    if algorithm.lower() not in ALGORITHMS or not secret:
        return None
    name = algorithm.lower()
    return SignatureCheck(
        algorithm=name,
        body_bytes=len(body),
        secret_bytes=len(secret.encode()),
        given=f"{name}={digest.lower()}",
        expected=sign(name, secret, body),
    )


def review_notification(
    headers: Headers, body: bytes, *, secret: str, topic: str
) -> tuple[Remark, ...]:
    """Remarks on a notification. ``secret`` "": none was given to the hub. ``topic``
    "": it is not known."""
    type = headers.get("content-type", "")
    found = [
        _good(f"{len(body)} bytes of {type}", "7")
        if type
        else _bad("Content-Type is missing: it MUST be that of the topic", "7")
    ]
    links = parse_link_header(headers.get("link", ""))
    for relation in ("hub", "self"):
        named = [each.href for each in links if each.rel == relation]
        if not named:
            found.append(_bad(f"no Link with rel={relation}", "7"))
        elif relation == "self" and topic and named != [topic]:
            found.append(_note(f"rel=self is {named[0]}, not {topic}", "7"))
        else:
            found.append(_good(f"Link names rel={relation} {named[0]}", "7"))
    found.append(_review_signature(headers.get("x-hub-signature", ""), secret, body))
    return tuple(found)


def _review_signature(header: str, secret: str, body: bytes) -> Remark:
    if not secret:
        if header:
            return _bad("it is signed, though no secret was given", "7.1")
        return _note("it is not signed, as no secret was given", "7.1")
    if not header:
        return _bad("X-Hub-Signature is missing, though a secret was given", "7.1")
    check = check_signature(header, secret, body)
    if check is None:
        known = ", ".join(ALGORITHMS)
        return _bad(f"X-Hub-Signature is not METHOD=HEX with one of {known}", "7.1")
    computed = (
        f"HMAC-{check.algorithm.upper()} of the {check.body_bytes} bytes of the body"
        f" with the {check.secret_bytes} bytes of the secret is {check.expected}"
    )
    if not check.is_right:
        text = f"the signature is wrong: {computed}, not {check.given}"
        return _bad(f"{text}; such a notification MUST NOT be processed", "7.1")
    return _good(f"the signature is right: {computed}", "7.1")


def review_acknowledgement(status: int) -> tuple[Remark, ...]:
    """Remarks on a callback's answer to a notification."""
    if 200 <= status < 300:
        return (_good(f"the callback takes it: {status}", "7"),)
    if status == 410:
        return (_note("410: the hub may end the subscription", "7"),)
    if 300 <= status < 400:
        return (_bad(f"{status}: redirects are not followed, it has failed", "7"),)
    return (_bad(f"the callback answers {status}: the hub sends it again", "7"),)
