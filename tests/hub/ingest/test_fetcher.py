from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_network

import brotli
import pytest
from msgspec.structs import replace

from hub.core.fetched import FollowedRedirect
from hub.core.host_set import HostSet
from hub.http import HttpNetwork, Request, ResponseLimits
from hub.http.network_errors import Blocked, HostBlocked
from hub.ingest.fetcher import (
    Fetcher,
    FetchRequest,
    RedirectRefused,
    bare_url,
    redirect_target,
)
from storage.records import Credentials, Validators
from tests.support.clock import ManualClock
from tests.support.fake_network import FakeNetwork, Scripted, answered
from tests.support.http_server import Origin, ServerAnswer, ServerRequest, redirect

LOOPBACK = (ip_network("127.0.0.0/8"),)
LIMITS = ResponseLimits(seconds=2.0, idle_seconds=0.5, body_bytes=1_000_000)
AGENT = "Fanfare/1 (+https://hub.example/; 3 subscribers; feed-id=7)"
FEED = b"<rss version='2.0'><channel/></rss>"


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with Origin() as origin:
        yield origin


@pytest.fixture
async def elsewhere() -> AsyncIterator[Origin]:
    """Another origin: the same address, another port."""
    async with Origin() as elsewhere:
        yield elsewhere


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with HttpNetwork(allow_topics=LOOPBACK) as network:
        yield Fetcher(network, ManualClock(), LIMITS)


def asking(url: str) -> FetchRequest:
    return FetchRequest(url=url, user_agent=AGENT)


# --- an ordinary fetch -----------------------------------------------------------


async def test_a_feed_is_fetched_whole_with_what_its_origin_says_of_it(
    fetcher: Fetcher, origin: Origin
) -> None:
    said = {
        "ETag": 'W/"a-gzip"',
        "Last-Modified": "yesterday, or so",
        "Content-Type": "application/rss+xml",
        "Cache-Control": "max-age=60",
        "Expires": "never",
        "Date": "Thu, 01 Jan 2026 00:00:00 GMT",
        "Age": "5",
    }
    origin.serve("/feed", ServerAnswer(headers=said, body=FEED))
    fetched = await fetcher.fetch(asking(origin.url("/feed")))
    assert (fetched.status, fetched.error, fetched.body) == (200, "", FEED)
    assert fetched.url == origin.url("/feed")
    assert not fetched.conditional
    assert fetched.redirects == ()
    assert {
        "ETag": fetched.etag,
        "Last-Modified": fetched.last_modified,
        "Content-Type": fetched.content_type,
        "Cache-Control": fetched.cache_control,
        "Expires": fetched.expires,
        "Date": fetched.date,
        "Age": fetched.age,
    } == said


async def test_a_fetch_is_polite(fetcher: Fetcher, origin: Origin) -> None:
    origin.serve("/feed", ServerAnswer(body=FEED))
    await fetcher.fetch(asking(origin.url("/feed?a=b#part")))
    [request] = origin.requests
    assert (request.method, request.target) == ("GET", "/feed?a=b")
    assert request.headers["user-agent"] == AGENT
    assert request.headers["accept"] == (
        "application/atom+xml, application/rss+xml, application/feed+json, "
        "application/json;q=0.9, application/xml;q=0.9, text/xml;q=0.8, */*;q=0.1"
    )
    assert request.headers["accept-encoding"] == "gzip, br"
    assert set(request.headers) == {"host", "user-agent", "accept", "accept-encoding"}


async def test_a_fetch_tells_when_it_began_and_ended() -> None:
    clock = ManualClock()

    def slow(request: Request) -> Scripted:
        clock.advance(3)
        return Blocked()

    began = clock.now()
    fetched = await Fetcher(FakeNetwork(slow), clock, LIMITS).fetch(
        asking("http://host.example/")
    )
    assert fetched.started == began
    assert fetched.at == began + timedelta(seconds=3)


@pytest.mark.parametrize("coding", ["gzip", "br"])
async def test_a_compressed_feed_is_decompressed(
    fetcher: Fetcher, origin: Origin, coding: str
) -> None:
    body = gzip.compress(FEED) if coding == "gzip" else brotli.compress(FEED)
    origin.serve("/", ServerAnswer(headers={"Content-Encoding": coding}, body=body))
    assert (await fetcher.fetch(asking(origin.url("/")))).body == FEED


# --- conditional requests --------------------------------------------------------


async def test_validators_are_sent_back_byte_for_byte(
    fetcher: Fetcher, origin: Origin
) -> None:
    url = origin.url("/feed")
    origin.serve("/feed", ServerAnswer(status=304, headers={"ETag": "unquoted"}))
    validators = Validators(url=url, etag='W/"x-gzip', last_modified="Tue 1 jan 2026")
    fetched = await fetcher.fetch(replace(asking(url), validators=validators))
    assert (fetched.status, fetched.error, fetched.body) == (304, "", b"")
    assert fetched.conditional
    assert fetched.etag == "unquoted"
    headers = origin.requests[0].headers
    assert headers["if-none-match"] == 'W/"x-gzip'
    assert headers["if-modified-since"] == "Tue 1 jan 2026"


@pytest.mark.parametrize(
    ("etag", "last_modified", "sent"),
    [
        ('"x"', "", {"if-none-match"}),
        ("", "Thu, 01 Jan 2026 00:00:00 GMT", {"if-modified-since"}),
        ("", "", set()),
    ],
)
async def test_a_validator_that_was_never_given_is_never_made_up(
    fetcher: Fetcher, origin: Origin, etag: str, last_modified: str, sent: set[str]
) -> None:
    url = origin.url("/feed")
    validators = Validators(url=url, etag=etag, last_modified=last_modified)
    fetched = await fetcher.fetch(replace(asking(url), validators=validators))
    found = {name for name in origin.requests[0].headers if name.startswith("if-")}
    assert found == sent
    assert fetched.conditional is bool(sent)


async def test_validators_of_a_redirect_target_are_sent_only_there(
    fetcher: Fetcher, origin: Origin, elsewhere: Origin
) -> None:
    origin.serve("/feed", redirect(elsewhere.url("/feed"), 302))
    elsewhere.serve("/feed", ServerAnswer(status=304))
    validators = Validators(url=elsewhere.url("/feed"), etag='"x"')
    request = replace(asking(origin.url("/feed")), validators=validators)
    fetched = await fetcher.fetch(request)
    assert fetched.status == 304
    assert fetched.conditional
    assert "if-none-match" not in origin.requests[0].headers
    assert elsewhere.requests[0].headers["if-none-match"] == '"x"'


async def test_validators_that_were_stored_under_another_spelling_are_sent(
    fetcher: Fetcher, origin: Origin
) -> None:
    origin.serve("/feed", ServerAnswer(status=304))
    stored = origin.url("/feed").replace("http:", "HTTP:")
    request = asking(f"{stored}#top")
    validators = Validators(url=stored, etag='"x"')
    fetched = await fetcher.fetch(replace(request, validators=validators))
    assert (fetched.status, fetched.url) == (304, origin.url("/feed"))
    assert origin.requests[0].target == "/feed"


async def test_a_redirect_from_https_in_capitals_down_to_http_is_refused() -> None:
    capitals = bare_url("HTTPS://host.example/feed")
    with pytest.raises(RedirectRefused, match="from https to http"):
        redirect_target(capitals, "http://host.example/feed", [capitals])


async def test_validators_do_not_follow_a_redirect_to_another_url(
    fetcher: Fetcher, origin: Origin
) -> None:
    origin.serve("/old", redirect("/new"))
    origin.serve("/new", ServerAnswer(body=FEED))
    validators = Validators(url=origin.url("/old"), etag='"x"')
    request = replace(asking(origin.url("/old")), validators=validators)
    fetched = await fetcher.fetch(request)
    assert not fetched.conditional
    assert "if-none-match" in origin.requests[0].headers
    assert "if-none-match" not in origin.requests[1].headers


async def test_a_304_that_nobody_asked_for_is_an_error(
    fetcher: Fetcher, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(status=304))
    fetched = await fetcher.fetch(asking(origin.url("/")))
    assert fetched.error == "answered 304 to an unconditional request"


async def test_a_validator_that_could_not_be_sent_back_is_not_kept(
    fetcher: Fetcher, origin: Origin
) -> None:
    raw = b'HTTP/1.1 200 OK\r\nETag: "\xe9"\r\nContent-Length: 0\r\n\r\n'
    origin.serve("/", ServerAnswer(raw=raw))
    assert (await fetcher.fetch(asking(origin.url("/")))).etag == ""


async def test_a_content_type_that_is_not_unicode_is_read_as_latin_1(
    fetcher: Fetcher, origin: Origin
) -> None:
    raw = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8; x=\xe9\r\n"
        b"Content-Length: 0\r\n\r\n"
    )
    origin.serve("/", ServerAnswer(raw=raw))
    fetched = await fetcher.fetch(asking(origin.url("/")))
    assert fetched.content_type == "text/xml; charset=utf-8; x=é"


# --- credentials -----------------------------------------------------------------

SECRET = Credentials(username="me", password="s\u00e9cret", headers={"X-Key": "k"})


async def test_credentials_are_sent_to_the_feed(
    fetcher: Fetcher, origin: Origin
) -> None:
    request = replace(asking(origin.url("/")), credentials=SECRET)
    await fetcher.fetch(request)
    headers = origin.requests[0].headers
    assert headers["authorization"] == "Basic bWU6c8OpY3JldA=="
    assert headers["x-key"] == "k"


async def test_credentials_stay_with_the_origin_they_belong_to(
    fetcher: Fetcher, origin: Origin, elsewhere: Origin
) -> None:
    origin.serve("/feed", redirect(elsewhere.url("/feed")))
    elsewhere.serve("/feed", redirect(origin.url("/final")))
    await fetcher.fetch(replace(asking(origin.url("/feed")), credentials=SECRET))
    assert "authorization" not in elsewhere.requests[0].headers
    assert "x-key" not in elsewhere.requests[0].headers
    assert [request.target for request in origin.requests] == ["/feed", "/final"]
    assert all("x-key" in request.headers for request in origin.requests)


@pytest.mark.parametrize("belongs_to", ["http://owner.example/", "http://[half"])
async def test_a_moved_feed_does_not_take_its_credentials_along(
    fetcher: Fetcher, origin: Origin, belongs_to: str
) -> None:
    request = replace(
        asking(origin.url("/")), credentials=SECRET, credentials_origin=belongs_to
    )
    await fetcher.fetch(request)
    assert "authorization" not in origin.requests[0].headers


async def test_headers_that_the_operator_set_replace_ours(
    fetcher: Fetcher, origin: Origin
) -> None:
    credentials = Credentials(headers={"user-agent": "Curl", "Authorization": "Own"})
    await fetcher.fetch(replace(asking(origin.url("/")), credentials=credentials))
    head = origin.requests[0].head.lower()
    assert head.count(b"user-agent") == 1
    assert origin.requests[0].headers["user-agent"] == "Curl"
    assert origin.requests[0].headers["authorization"] == "Own"


async def test_user_information_in_a_url_is_neither_sent_nor_shown(
    fetcher: Fetcher, origin: Origin
) -> None:
    url = origin.url("/feed", host="me:secret@127.0.0.1")
    origin.serve("/feed", redirect(url.replace("/feed", "/next")))
    fetched = await fetcher.fetch(asking(url))
    assert "secret" not in repr(fetched)
    assert all(b"uthorization" not in request.head for request in origin.requests)


# --- redirects -------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_and_remembered(
    fetcher: Fetcher, origin: Origin, elsewhere: Origin, status: int
) -> None:
    origin.serve("/old", redirect(elsewhere.url("/new"), status))
    elsewhere.serve("/new", ServerAnswer(body=FEED))
    fetched = await fetcher.fetch(asking(origin.url("/old")))
    assert (fetched.status, fetched.body) == (200, FEED)
    assert fetched.url == elsewhere.url("/new")
    assert fetched.redirects == (
        FollowedRedirect(
            status=status, source=origin.url("/old"), target=elsewhere.url("/new")
        ),
    )
    assert all("referer" not in request.headers for request in elsewhere.requests)


async def test_redirects_in_a_circle_stop(fetcher: Fetcher, origin: Origin) -> None:
    origin.serve("/a", redirect("/b"))
    origin.serve("/b", redirect("/a"))
    fetched = await fetcher.fetch(asking(origin.url("/a")))
    assert (fetched.status, fetched.error) == (
        301,
        "the redirects form a loop",
    )
    assert len(origin.requests) == 2


async def test_an_endless_chain_of_redirects_stops_after_five(
    fetcher: Fetcher, origin: Origin
) -> None:
    for number in range(9):
        origin.serve(f"/{number}", redirect(f"/{number + 1}", 302))
    fetched = await fetcher.fetch(asking(origin.url("/0")))
    assert (fetched.status, fetched.error) == (302, "more than 5 redirects")
    assert len(fetched.redirects) == 5
    assert len(origin.requests) == 6


async def test_a_redirect_to_a_blocked_address_is_an_error(origin: Origin) -> None:
    async with Origin("127.0.0.2") as canary:
        origin.serve("/feed", redirect(canary.url("/")))
        only_origin = [ip_network("127.0.0.1/32")]
        async with HttpNetwork(allow_topics=only_origin) as network:
            fetcher = Fetcher(network, ManualClock(), LIMITS)
            fetched = await fetcher.fetch(asking(origin.url("/feed")))
        assert canary.connections == 0
    assert (fetched.status, fetched.body) == (0, b"")
    assert fetched.error.startswith("blocked")
    assert len(fetched.redirects) == 1


@pytest.mark.parametrize("host", ["quiet.example", "sub.quiet.example"])
async def test_a_host_that_wants_no_requests_gets_none_by_a_redirect_either(
    host: str,
) -> None:
    moved = answered(301, headers={"Location": f"http://{host}/feed"})
    network = FakeNetwork(moved)
    fetcher = Fetcher(
        network, ManualClock(), ResponseLimits(), HostSet(["quiet.example"])
    )
    for url in (f"http://{host}/feed", "http://host.example/feed"):
        fetched = await fetcher.fetch(asking(url))
        assert (fetched.status, fetched.error) == (0, str(HostBlocked()))
    assert [request.url for request in network.requests] == ["http://host.example/feed"]


async def test_all_redirects_together_have_the_time_of_one_fetch() -> None:
    clock = ManualClock()

    def slowly(request: Request) -> Scripted:
        clock.advance(8)
        number = len(network.requests)
        return answered(302, headers={"Location": f"/{number}"})

    network = FakeNetwork(slowly, slowly, slowly, Blocked())
    limits = ResponseLimits(seconds=20.0)
    await Fetcher(network, clock, limits).fetch(asking("http://host.example/"))
    assert [request.limits.seconds for request in network.requests] == [20, 12, 4, 1]


# --- failures --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (204, "answered 204 No Content"),
        (206, "answered 206 Partial Content"),
        (300, "answered 300 Multiple Choices"),
        (401, "answered 401 Unauthorized"),
        (404, "answered 404 Not Found"),
        (410, "answered 410 Gone"),
        (500, "answered 500 Internal Server Error"),
        (599, "answered 599"),
    ],
)
async def test_any_other_status_is_an_error_without_a_body(
    fetcher: Fetcher, origin: Origin, status: int, error: str
) -> None:
    origin.serve("/", ServerAnswer(status=status, body=b"sorry"))
    fetched = await fetcher.fetch(asking(origin.url("/")))
    assert (fetched.status, fetched.error, fetched.body) == (status, error, b"")


async def test_a_server_that_asks_for_patience_is_understood(
    fetcher: Fetcher, origin: Origin
) -> None:
    origin.serve("/", ServerAnswer(status=429, headers={"Retry-After": "120"}))
    assert (await fetcher.fetch(asking(origin.url("/")))).retry_after == "120"


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (ServerAnswer(body=bytes(2_000_000)), 200, "larger than 1000000 bytes"),
        (ServerAnswer(headers={"Content-Length": "200000000"}), 200, "larger than"),
        (
            ServerAnswer(body=bytes(9999), chunked=True, endless=True),
            200,
            "larger than",
        ),
        (
            ServerAnswer(
                headers={"Content-Encoding": "gzip"},
                body=gzip.compress(bytes(200_000_000), 1),
            ),
            200,
            "larger than",
        ),
        (ServerAnswer(body=FEED, piece=1, drip=0.2), 200, "no whole answer in time"),
        (ServerAnswer(silent=True), 0, "no answer in time"),
        (
            ServerAnswer(headers={"Content-Length": "9"}, body=b"<rss", closes=True),
            200,
            "ended early",
        ),
        (ServerAnswer(raw=b"SSH-2.0\r\n\r\n", closes=True), 0, "not valid HTTP"),
    ],
    ids=["huge", "lying", "endless", "bomb", "drip", "silent", "short", "no HTTP"],
)
async def test_every_way_to_misbehave_ends_in_a_clear_error(
    fetcher: Fetcher, origin: Origin, answer: ServerAnswer, status: int, error: str
) -> None:
    origin.serve("/", answer)
    fetched = await fetcher.fetch(asking(origin.url("/")))
    assert (fetched.status, fetched.body) == (status, b"")
    assert error in fetched.error


@pytest.mark.parametrize("url", ["", "feed", "ftp://host.example/", "http://[half"])
async def test_what_is_no_url_is_an_error(fetcher: Fetcher, url: str) -> None:
    fetched = await fetcher.fetch(asking(url))
    assert fetched.status == 0
    assert "URL" in fetched.error


async def test_an_origin_may_answer_by_what_it_was_asked(
    fetcher: Fetcher, origin: Origin
) -> None:
    def by_validator(request: ServerRequest) -> ServerAnswer:
        if request.headers.get("if-none-match") == '"1"':
            return ServerAnswer(status=304)
        return ServerAnswer(headers={"ETag": '"1"'}, body=FEED)

    origin.serve("/", by_validator)
    first = await fetcher.fetch(asking(origin.url("/")))
    validators = Validators(url=first.url, etag=first.etag)
    again = replace(asking(origin.url("/")), validators=validators)
    assert (await fetcher.fetch(again)).status == 304


class Kept:
    def __init__(self) -> None:
        self.size = 0

    def write(self, piece: bytes) -> None:
        self.size += len(piece)


async def test_a_body_that_goes_into_a_sink_has_limits_of_its_own(
    origin: Origin, fetcher: Fetcher
) -> None:
    origin.serve("/large", ServerAnswer(body=b"x" * 2_000_000))
    kept = Kept()
    request = asking(origin.url("/large"))
    refused = await fetcher.fetch(replace(request, sink=kept))
    limits = replace(LIMITS, body_bytes=3_000_000)
    fetched = await fetcher.fetch(replace(request, sink=kept, limits=limits))
    assert refused.error == "the answer is larger than 1000000 bytes"
    assert (fetched.error, fetched.body, kept.size) == ("", b"", 2_000_000)
