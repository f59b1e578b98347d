"""Who may do what, made from the table of routes: every path, every verb, every token.

A route that is added without saying who may use it fails here.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from hub.services.token_authentication import CreateToken
from hub.web.api.openapi import OPEN_OPERATIONS, SCOPES
from hub.web.superfeedr.endpoint import create_modes
from storage.records import (
    NewFeed,
    NewSubscription,
    SubscriptionId,
    SubscriptionState,
    TokenScope,
)
from tests.support.admin import TOKEN
from tests.support.application_client import client_of
from tests.support.services import Hub, open_hub

VERBS = (
    *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"),
    *("CONNECT", "PROPFIND", "PURGE", "ODD"),
)
OPEN = {(each.method, each.path) for each in OPEN_OPERATIONS}
OF_SESSIONS = ("/admin", "/account")
"""Pages: `tests/hub/web/admin/test_sessions_of_pages.py` walks their routes."""
OPEN_WEBSOCKETS = {"/stream"}
ANY_TOKEN = {("POST", "/openfeeder/update")}
"""DemoServers of ``/api``, what takes a token, whatever its rights."""
OF_PAGES = {("OPTIONS", "/stream")}
"""What pages of other sites may ask (CORS), answered before there are routes."""
ANY_TOKEN_MODES, OPEN_MODES = {"authenticate"}, {"publish"}
NO_GOOD = ("nobody", "unknown", "revoked", "malformed")
SINGLE = [each for each in TokenScope if each is not TokenScope.ADMIN]


def undeclared(application: Starlette) -> set[str]:
    """Routes of which nothing says who may use them."""
    return {
        f"{method} {path}"
        for method, path in routes(application.routes)
        if not is_declared(method, path)
    }


def routes(found: list[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    for route in found:
        if isinstance(route, Mount):
            yield from routes(list(route.routes), prefix + route.path)
        elif isinstance(route, WebSocketRoute):
            yield "websocket", prefix + route.path
        else:
            assert isinstance(route, Route)
            for method in (route.methods or set()) - {"HEAD"}:
                yield method, prefix + route.path


def is_declared(method: str, path: str) -> bool:
    if method == "websocket":
        return path in OPEN_WEBSOCKETS
    if path.startswith("/api"):
        return (method, path.removeprefix("/api")) in SCOPES
    is_of_pages = path.startswith((*OF_SESSIONS, "/assets/"))
    return is_of_pages or (method, path) in OPEN


@dataclass
class Scene:
    hub: Hub
    application: Starlette
    client: httpx2.AsyncClient
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        return sorted({path for _, path in routes(self.application.routes)})

    def headers(self, who: str) -> Mapping[str, str]:
        if who == "nobody":
            return {}
        if who == "malformed":
            return {"Authorization": "Bearer"}
        return {"Authorization": f"Bearer {self.tokens[who]}"}

    async def ask(self, verb: str, path: str, who: str) -> httpx2.Response:
        for name in ("{id}", "{token}", "{name}"):
            path = path.replace(name, "999")
        if path.startswith("/api/db/"):
            path += "?wait=0"  # nobody does such jobs here
        return await self.client.request(verb, path, headers=self.headers(who))

    async def call(self, mode: str, who: str, **more: str) -> httpx2.Response:
        """A mode of the API that is Superfeedr's."""
        login = base64.b64encode(f"alice:{self.tokens.get(who, '')}".encode()).decode()
        headers = {} if who == "nobody" else {"Authorization": f"Basic {login}"}
        form = {f"hub.{name}": value for name, value in {"mode": mode, **more}.items()}
        return await self.client.post("/", data=form, headers=headers)

    async def make_token(self, account: str, *rights: TokenScope) -> str:
        made = await self.hub.services.tokens.create(
            CreateToken(account=account, scopes=frozenset(rights))
        )
        return made.secret


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_hub(tmp_path) as hub:
        application = hub.application
        async with client_of(application) as client:
            scene = Scene(hub, application, client)
            for scope in TokenScope:
                scene.tokens[scope] = await scene.make_token("alice", scope)
            made = await hub.services.tokens.create(
                CreateToken(account="alice", scopes=frozenset(TokenScope))
            )
            await hub.services.tokens.revoke(made.token.id)
            scene.tokens["revoked"] = made.secret
            scene.tokens["unknown"] = "0" * 32
            scene.tokens["operator"] = TOKEN
            yield scene


def test_every_route_says_who_may_use_it(scene: Scene) -> None:
    assert undeclared(scene.application) == set()


@pytest.mark.parametrize(
    "route", ["/new", "/api/new", "/api/feeds/{id}/new", "/topics/{id}.new"]
)
def test_a_route_that_does_not_say_so_is_found(scene: Scene, route: str) -> None:
    async def answer(request: object) -> Response:
        raise NotImplementedError

    added = Route(route.removeprefix("/api"), answer, methods=["POST"])
    mount = next(each for each in scene.application.routes if isinstance(each, Mount))
    table = mount.routes if route.startswith("/api") else scene.application.routes
    assert isinstance(table, list)
    table.append(added)
    assert undeclared(scene.application) == {f"POST {route}"}


def test_every_mode_says_who_may_use_it(scene: Scene) -> None:
    modes = create_modes(scene.hub.services)
    unlimited = {name for name, mode in modes.items() if mode.scope is None}
    assert unlimited == ANY_TOKEN_MODES | OPEN_MODES
    assert {name for name, mode in modes.items() if mode.is_open} == OPEN_MODES


def needed(verb: str, path: str) -> TokenScope | None:
    """The scope for a verb at a path of the API; a verb it has not takes none."""
    method = "GET" if verb == "HEAD" else verb
    return SCOPES.get((method, path.removeprefix("/api")))


def has(scene: Scene, verb: str, path: str) -> bool:
    method = "GET" if verb == "HEAD" else verb
    return (method, path) in set(routes(scene.application.routes))


@pytest.mark.parametrize("who", NO_GOOD)
async def test_without_a_good_token_nothing_of_the_api_is_open(
    scene: Scene, who: str
) -> None:
    for path in filter(lambda each: each.startswith("/api/"), scene.paths):
        for verb in VERBS:
            answer = await scene.ask(verb, path, who)
            is_open = has(scene, verb, path) and needed(verb, path) is None
            assert (answer.status_code == 401) != is_open, (verb, path)


@pytest.mark.parametrize("name", ["authorization", "access_token", "token", "api_key"])
async def test_a_token_in_a_url_or_a_cookie_opens_nothing_of_the_api(
    scene: Scene, name: str
) -> None:
    """URLs are kept and cookies sent by browsers for any page: there are none here.
    (`authorization` is for `/stream` and ``/``, where browsers cannot send a header.)
    """
    secret = scene.tokens["operator"]
    login = base64.b64encode(f"admin:{secret}".encode()).decode()
    for path in filter(lambda each: each.startswith("/api/"), scene.paths):
        for verb in ("GET", "POST", "DELETE"):
            if not has(scene, verb, path) or needed(verb, path) is None:
                continue
            for value in (secret, login):
                named = path.replace("{id}", "999").replace("{name}", "999")
                asked = await scene.client.request(
                    verb,
                    named,
                    params={name: value},
                    headers={"Cookie": f"{name}={value}"},
                )
                assert asked.status_code == 401, (verb, path)
                assert "set-cookie" not in asked.headers


@pytest.mark.parametrize(
    "claims",
    [
        '{"alg":"none"}',
        '{"alg":"HS256","typ":"JWT"}',
        '{"alg":"HS256","kid":"../../../dev/null"}',
        '{"alg":"HS256","kid":"\' OR 1=1 --"}',
    ],
)
async def test_a_token_says_nothing_of_itself_that_is_believed(
    scene: Scene, claims: str
) -> None:
    """What is one elsewhere (RFC 7519) is any unknown token here."""
    parts = [claims, '{"sub":"admin","rights":["admin"]}', ""]
    token = ".".join(base64.urlsafe_b64encode(it.encode()).decode() for it in parts)
    for shown in (token, token.rstrip("=")):
        headers = {"Authorization": f"Bearer {shown}"}
        answer = await scene.client.get("/api/feeds", headers=headers)
        assert answer.status_code == 401


@pytest.mark.parametrize("scope", SINGLE)
async def test_a_right_opens_its_own_verbs_and_paths_and_no_other(
    scene: Scene, scope: TokenScope
) -> None:
    for path in filter(lambda each: each.startswith("/api/"), scene.paths):
        for verb in VERBS:
            status = (await scene.ask(verb, path, scope)).status_code
            if not has(scene, verb, path):
                assert status == 405, (verb, path)
            elif needed(verb, path) in (None, scope):
                assert status not in (401, 403, 405), (verb, path)
            else:
                assert status == 403, (verb, path)


@pytest.mark.parametrize("who", [TokenScope.ADMIN, "operator"])
async def test_whoever_administers_may_do_everything_there_is(
    scene: Scene, who: str
) -> None:
    for path in filter(lambda each: each.startswith("/api/"), scene.paths):
        for verb in VERBS:
            status = (await scene.ask(verb, path, who)).status_code
            assert (status == 405) != has(scene, verb, path), (verb, path)
            assert status not in (401, 403), (verb, path)


@pytest.mark.parametrize("who", ["nobody", *SINGLE])
async def test_open_doors_take_their_own_verbs_whoever_knocks(
    scene: Scene, who: str
) -> None:
    for path in scene.paths:
        if path.startswith(("/api", *OF_SESSIONS)) or path == "/":
            continue  # what is at ``/`` is told apart by its mode
        for verb in VERBS:
            status = (await scene.ask(verb, path, who)).status_code
            if not has(scene, verb, path):
                assert status == (204 if (verb, path) in OF_PAGES else 405)
            elif (verb, path) in ANY_TOKEN:
                assert (status == 401) == (who == "nobody"), (verb, path)
            else:
                assert status not in (401, 403), (verb, path)


async def test_a_mode_takes_its_right_and_no_other(scene: Scene) -> None:
    for name, mode in create_modes(scene.hub.services).items():
        for who in ("nobody", "unknown", "revoked"):
            answer = await scene.call(name, who)
            assert (answer.status_code == 401) != mode.is_open, (name, who)
        for scope in SINGLE:
            answer = await scene.call(name, scope)
            is_free = mode.is_open or mode.scope in (None, scope)
            assert (answer.status_code == 403) != is_free, (name, scope)


MARK = "of-bob-alone"
BOBS_TOPIC = f"https://feeds.example/{MARK}"
BOBS_CALLBACK = f"https://bob.example/{MARK}"


async def bobs_subscription(scene: Scene) -> SubscriptionId:
    """To a feed that is his alone, too."""
    token = await scene.make_token("bob", TokenScope.SUBSCRIBE)
    account = await scene.hub.services.tokens.authenticate(token, "bob")
    assert account is not None
    storage, now = scene.hub.storage, scene.hub.clock.now()
    feed, _ = await storage.feeds.add(NewFeed(url=BOBS_TOPIC, private=True), now)
    made = await storage.subscriptions.add(
        NewSubscription(
            account=account.account.id,
            topic=BOBS_TOPIC,
            feed_id=feed.id,
            callback=BOBS_CALLBACK,
        ),
        now,
    )
    return made.id


async def test_nobody_sees_or_touches_what_is_another_account_s(scene: Scene) -> None:
    """Every route with every verb, and every mode, by one who may do all but
    administer."""
    subscription = await bobs_subscription(scene)
    rights = [each for each in TokenScope if each is not TokenScope.ADMIN]
    scene.tokens["alice"] = await scene.make_token("alice", *rights)
    headers = scene.headers("alice")

    for path in scene.paths:
        for verb in VERBS:
            named = path.replace("{id}", str(subscription)).replace("{name}", "1")
            answer = await scene.client.request(verb, named, headers=headers)
            assert MARK not in answer.text, (verb, path)
    for mode in create_modes(scene.hub.services):
        for more in (
            {"callback": BOBS_CALLBACK},
            {"topic": BOBS_TOPIC},
            {"topic": BOBS_TOPIC, "callback": BOBS_CALLBACK},
        ):
            if mode == "subscribe":  # that is hers to do
                continue
            answer = await scene.call(mode, "alice", **more)
            told = answer.text.replace(BOBS_TOPIC, "").replace(BOBS_CALLBACK, "")
            assert MARK not in told, mode
            assert answer.status_code in (204, 200, 202, 404, 422), mode

    kept = await scene.hub.storage.subscriptions.get(subscription)
    assert kept is not None
    assert kept.state is SubscriptionState.ACTIVE
