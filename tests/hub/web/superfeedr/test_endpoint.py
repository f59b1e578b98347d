"""The door of the Superfeedr-compatible API: who is let in, and how it says no."""

from __future__ import annotations

import base64

import httpx2
import pytest

from storage.records import TokenScope
from tests.hub.web.superfeedr.conftest import make_token
from tests.support.admin import ADMIN, ADMIN_LOGIN
from tests.support.services import Hub

ALL = {"subscribe": True, "unsubscribe": True, "list": True, "retrieve": True}


def encoded(token: str, login: str = "me") -> str:
    return base64.b64encode(f"{login}:{token}".encode()).decode()


@pytest.mark.parametrize("path", ["/", "/hubbub", "/hubbub/"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
async def test_the_mode_decides_and_not_the_method(
    anybody: httpx2.AsyncClient, token: str, path: str, method: str
) -> None:
    for sent in (
        {"params": {"hub.mode": "authenticate"}},
        {"content": "hub.mode=authenticate"},
        {"json": {"hub.mode": "authenticate"}},
    ):
        answer = await anybody.request(
            method,
            path,
            auth=("me", token),
            **sent,  # type: ignore[arg-type]
        )
        assert (answer.status_code, answer.json()) == (200, ALL)
        assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    "target", ["/?&hub.mode=authenticate", "/&hub.mode=authenticate"]
)
async def test_a_misplaced_ampersand_does_no_harm(
    anybody: httpx2.AsyncClient, token: str, target: str
) -> None:
    answer = await anybody.get(target, auth=("me", token))
    assert answer.json() == ALL


async def test_a_browser_still_gets_the_page(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.get("/", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


async def test_a_token_may_come_in_each_of_three_ways(
    anybody: httpx2.AsyncClient, token: str
) -> None:
    mode = {"hub.mode": "authenticate"}
    credential = encoded(token)
    broken_up = f"{credential[:20]}\n{credential[20:]}\n"
    for sent in (
        {"headers": {"Authorization": f"Bearer {token}"}},
        {"headers": {"Authorization": f"Basic {credential}"}},
        {"params": {"authorization": credential}},
        {"params": {"authorization": credential.rstrip("=")}},
        {"params": {"authorization": f"Basic {credential}"}},
        {"data": {"authorization": broken_up}},
    ):
        sent = {**sent, "params": {**mode, **sent.get("params", {})}}
        answer = await anybody.request("POST", "/", **sent)  # type: ignore[arg-type]
        assert answer.status_code == 200, sent


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"authorization": "!!!"},
        {"authorization": base64.b64encode(b"no colon").decode()},
        {"authorization": base64.b64encode(b"\xff\xfe:x").decode()},
        {"authorization": encoded("0" * 32)},
    ],
)
async def test_without_a_good_token_it_is_401_with_a_challenge_of_basic(
    anybody: httpx2.AsyncClient, params: dict[str, str]
) -> None:
    answer = await anybody.get("/", params={"hub.mode": "authenticate", **params})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic realm=")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.text
    as_json = await anybody.get(
        "/",
        params={"hub.mode": "authenticate", **params},
        headers={"Accept": "application/json"},
    )
    assert as_json.json()["status"] == 401
    assert as_json.json()["error"] == answer.text.strip()


async def test_a_missing_right_is_named(hub: Hub, anybody: httpx2.AsyncClient) -> None:
    token = await make_token(hub, TokenScope.RETRIEVE)
    rights = await anybody.get(
        "/?hub.mode=authenticate&rights=true", auth=("me", token)
    )
    assert rights.json() == {**dict.fromkeys(ALL, False), "retrieve": True}
    refused = await anybody.post("/?hub.mode=subscribe", auth=("me", token))
    assert refused.status_code == 403
    assert "the `subscribe` scope" in refused.text


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ("/hubbub", "hub.mode"),
        ("/?hub.mode=dance", "hub.mode"),
        ("/?hub.mode=%ff", "query"),
    ],
)
async def test_what_is_wrong_is_named_as_text_or_as_json(
    anybody: httpx2.AsyncClient, target: str, field: str
) -> None:
    plain = await anybody.get(target)
    assert plain.status_code == 422
    assert plain.headers["content-type"].startswith("text/plain")
    assert field in plain.text
    answer = await anybody.get(target, headers={"Accept": "application/json"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.json()["field"] == field
    assert field in answer.json()["error"]


async def test_pages_of_other_sites_may_ask(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.options(
        "/",
        headers={
            "Origin": "https://river.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-length",
        },
    )
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert (
        answer.headers["access-control-allow-headers"]
        == "authorization, content-length"
    )


@pytest.mark.parametrize(
    ("mode", "status"), [("cors", 200), ("no-cors", 403), ("navigate", 403)]
)
async def test_of_another_site_only_what_its_script_sent_counts(
    anybody: httpx2.AsyncClient, token: str, mode: str, status: int
) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
    target = "/?hub.mode=authenticate"
    answer = await anybody.get(target, headers=headers, auth=("me", token))
    assert answer.status_code == status
    explicit = await anybody.get(
        f"{target}&authorization={encoded(token)}", headers=headers
    )
    assert explicit.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Origin": "http://x.example"}, id="a-form-over-plain-http"),
        pytest.param({"Origin": "null"}, id="a-form-of-a-sandboxed-frame"),
        pytest.param(
            {
                "Origin": "https://x.example",
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "cors",
            },
            id="a-script-that-includes-kept-credentials",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe", "replay"])
async def test_no_form_or_script_of_another_site_changes_anything_with_kept_credentials(
    anybody: httpx2.AsyncClient, token: str, mode: str, headers: dict[str, str]
) -> None:
    form = {
        "hub.mode": mode,
        "hub.topic": "https://example.org/feed",
        "hub.callback": "https://you.example/hook",
    }
    answer = await anybody.post("/", data=form, headers=headers, auth=("me", token))
    assert answer.status_code == 403
    assert "parameter authorization" in answer.text
    sent = {"Authorization": f"Bearer {token}", **headers}
    answer = await anybody.post("/", data=form, headers=sent)
    assert answer.status_code != 403
    form["authorization"] = encoded(token)
    answer = await anybody.post("/", data=form, headers=headers)
    assert answer.status_code != 403


async def test_the_administrator_is_not_whoever_another_site_says(
    client: httpx2.AsyncClient,
) -> None:
    headers = {"Origin": "https://elsewhere.example"}
    answer = await client.get("/?hub.mode=authenticate", headers=headers)
    assert answer.status_code == 403


CHANGE = "/?hub.mode=unsubscribe&hub.topic=https%3A%2F%2Fexample.org%2Ffeed"
REPLAY = CHANGE.replace("unsubscribe", "replay")
SEND = f"{REPLAY}&hub.callback=https%3A%2F%2Fyou.example"
SCRIPT = "/?hub.mode=list&callback=steal"
LIST = "/?hub.mode=list"
CURL = {"User-Agent": "curl/8.5"}


def browser(**more: str) -> dict[str, str]:
    """What one sends for an image or a script of another's page, over plain http."""
    named = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101"}
    return {**named, "Accept-Language": "en-US,en;q=0.5", **more}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("target", "headers", "is_refused"),
    [
        pytest.param(CHANGE, browser(), True, id="an-image-that-unsubscribes"),
        pytest.param(CHANGE, CURL, True, id="whoever-unsubscribes-by-GET"),
        pytest.param(SCRIPT, browser(), True, id="a-script-that-reads-a-list"),
        pytest.param(SCRIPT, CURL, True, id="whoever-reads-it-as-a-script"),
        pytest.param(SEND, browser(), True, id="an-image-that-replays"),
        pytest.param(SEND, {"Referer": "http://x.example"}, True, id="a-link"),
        pytest.param(SEND, CURL, False, id="replay-as-it-is-documented"),
        pytest.param(LIST, browser(), False, id="a-list-nobody-else-reads"),
    ],
)
async def test_by_get_what_a_browser_keeps_neither_changes_anything_nor_is_a_script(
    anybody: httpx2.AsyncClient,
    token: str,
    method: str,
    target: str,
    headers: dict[str, str],
    is_refused: bool,
) -> None:
    answer = await anybody.request(method, target, headers=headers, auth=("me", token))
    is_told = b'"status":403' in answer.content  # to a script by one that runs
    assert (is_told or answer.status_code == 403) == is_refused
    by_script = {"Authorization": f"Bearer {token}", **headers}
    explicit = await anybody.request(method, target, headers=by_script)
    assert explicit.status_code != 403
    by_query = f"{target}&authorization={encoded(token)}"
    as_parameter = await anybody.request(method, by_query, headers=headers)
    assert as_parameter.status_code != 403
    assert b'"status":403' not in as_parameter.content


async def test_by_post_a_token_in_the_header_changes_what_it_may(
    anybody: httpx2.AsyncClient, token: str
) -> None:
    answer = await anybody.post(CHANGE, auth=("me", token), headers=browser())
    assert answer.status_code != 403


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/?hub.mode=list", "authorization"),
        ("/?hub.mode=list", "%61uthorization"),
        ("/?hub.mode=list", "hub.authorization"),
        ("/stream?topic=https://a.example/", "authorization"),
        ("/stream?topic=https://a.example/", "%61uthorization"),
    ],
)
async def test_the_admin_token_is_not_taken_in_a_query_string(
    anybody: httpx2.AsyncClient, path: str, name: str
) -> None:
    headers = {"Accept": "*/*"}
    answer = await anybody.get(f"{path}&{name}={ADMIN_LOGIN}", headers=headers)
    assert answer.status_code == 403
    assert "query string" in answer.text
    form = {"authorization": ADMIN_LOGIN, "hub.mode": "authenticate"}
    assert (await anybody.post("/", data=form)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_admin_token_opens_no_jsonp(
    client: httpx2.AsyncClient, method: str
) -> None:
    bearer = {**ADMIN, "Accept": "application/json"}
    answer = await client.request(method, SCRIPT, headers=bearer)
    assert "the admin token cannot be used with callback" in answer.text
    assert '"status":403' in answer.text


async def test_with_a_callback_the_answer_is_a_script(
    anybody: httpx2.AsyncClient, token: str
) -> None:
    login = f"&authorization={encoded(token)}"
    target = "/?hub.mode=authenticate&callback=jQuery123_4.done&_=1"
    answer = await anybody.get(target + login)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.text.startswith("jQuery123_4.done({")
    assert answer.text.endswith("})")


@pytest.mark.parametrize("name", ["alert(1)//", "a b", "x" * 200, "<script>"])
async def test_a_callback_that_is_no_name_is_refused(
    anybody: httpx2.AsyncClient, token: str, name: str
) -> None:
    params = {"hub.mode": "authenticate", "callback": name}
    answer = await anybody.get("/", params=params, auth=("me", token))
    assert answer.status_code == 422
    assert "callback" in answer.text
