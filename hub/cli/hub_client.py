"""The CLI's side of the administration API, over the standard library's HTTP."""

from __future__ import annotations

import functools
import http.client
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit

import click

from hub import __version__
from hub.admin_token import TokenUnreadable, read_token, token_file
from hub.cli.wording import Failure, HubUnreachable
from hub.hub_address import (
    IDENTITY_PATH,
    AddressUnreadable,
    HubAddress,
    address_file,
    claim_token,
    is_proof,
    is_same,
    listening_url,
    name_connection,
    prove_token,
    read_address,
)
from hub.runtime.setting_readers import origin_url
from hub.settings import PREFIX, SettingError, Settings, load_settings

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
"""Deadline of an answer: longer than the hub ever waits for a fetch."""
LARGEST_ANSWER = 64 * 1024 * 1024
PAGE = 500

Arguments = ParamSpec("Arguments")
Document = dict[str, Any]
"""A JSON object of the API; its members are described in the API reference."""


class HubRefused(Failure):
    """The hub answered that it will not, or cannot, do what it was asked."""

    def __init__(self, status: int, problem: Mapping[str, object]) -> None:
        self.status = status
        detail = problem.get("detail") or problem.get("title") or f"HTTP {status}"
        super().__init__(str(detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A running hub, as seen by one command."""

    url: str
    token: str

    def get(self, path: str, **query: object) -> Document:
        given = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
            if value is not None
        }
        asked = urlencode(given, doseq=True)
        return self._request("GET", f"{path}?{asked}" if asked else path)

    def read(self, path: str) -> bytes:
        """Return a document that is not JSON. Any status but 200 is a `HubRefused`."""
        status, answer = self.reach("GET", path)
        if status != 200:
            raise HubRefused(status, _object(answer) or {})
        return answer

    def post(
        self,
        path: str,
        body: Mapping[str, object] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> Document:
        """Post a JSON body; ``seconds`` is the deadline of the answer."""
        return self._request("POST", path, {} if body is None else body, seconds)

    def patch(self, path: str, body: Mapping[str, object]) -> Document:
        return self._request("PATCH", path, body)

    def delete(self, path: str) -> Document:
        return self._request("DELETE", path)

    def each(
        self, path: str, name: str, *, by: str = "after", **query: object
    ) -> Iterator[Document]:
        """Yield all items of a paged list, which each page has under ``name``."""
        for page in self.pages(path, by=by, **query):
            yield from page[name]

    def pages(
        self, path: str, *, by: str = "after", **query: object
    ) -> Iterator[Document]:
        """Yield all pages of a list, and at least one.

        The next page is asked for by the page's ``cursor`` if it has one, or else by
        its ``next``, which is sent as the parameter ``by``.
        """
        place: Document = {}
        while True:
            page = self.get(path, limit=PAGE, **place, **query)
            yield page
            following: Document = {}
            if page.get("cursor") is not None:
                following = {"cursor": page["cursor"]}
            elif page["next"] is not None:
                following = {by: page["next"]}
            if following in ({}, place):  # the last page, or a repeated one
                return
            place = following

    def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> Document:
        status, answer = self.reach(method, path, body, seconds)
        document = _object(answer)
        if document is None:
            raise HubRefused(status, {"detail": f"{self.url} is not a hub"})
        if status >= 400:
            raise HubRefused(status, document)
        return document

    def reach(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> tuple[int, bytes]:
        """Return status and body of any answer. Raises `HubUnreachable`."""
        with self._connected(seconds) as connection:
            return self._ask(connection, method, path, body)

    def has_proved_token(self) -> bool:
        """Return whether the server proves that it has the same token.

        The token itself is not sent. Raises `HubUnreachable`.
        """
        challenge = secrets.token_hex(24)
        with self._connected(ANSWER_SECONDS) as connection:
            ends = connection.sock.getsockname(), connection.sock.getpeername()
            name = name_connection(*(end[:2] for end in ends))
            claim = claim_token(self.token, name, challenge)
            query = urlencode({"challenge": challenge, "claim": claim})
            answer = replace(self, token="")._ask(
                connection, "GET", f"{IDENTITY_PATH}?{query}"
            )
        return is_same(_proof(*answer), prove_token(self.token, name, challenge))

    @contextmanager
    def _connected(self, seconds: float) -> Iterator[http.client.HTTPConnection]:
        """Connect for the block. Raises `HubUnreachable`, for failures in it too."""
        parts = urlsplit(self.url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
            connection.sock.settimeout(seconds)
            yield connection
        except (OSError, http.client.HTTPException) as error:
            raise HubUnreachable(
                f"no hub answers at {self.url} ({error or type(error).__name__});"
                " start one with `fanfare serve`, or name it with --url"
            ) from error
        finally:
            connection.close()

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
    ) -> tuple[int, bytes]:
        headers = {"User-Agent": f"fanfare-cli/{__version__}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        payload = None if body is None else json.dumps(body).encode()
        connection.request(method, urlsplit(self.url).path + path, payload, headers)
        response = connection.getresponse()
        return response.status, response.read(LARGEST_ANSWER)


def _proof(status: int, answer: bytes) -> object:
    return (_object(answer) or {}).get("proof") if status == 200 else None


def _object(answer: bytes) -> Document | None:
    try:
        document = json.loads(answer)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def read_settings(options: Mapping[str, str | None] | None = None) -> Settings:
    """Return the settings of this environment. A bad one is a `click.UsageError`."""
    try:
        return load_settings(os.environ, options)
    except SettingError as error:
        raise click.UsageError(str(error)) from error


_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}


def find_hub(url: str | None) -> Hub:
    """Return the hub that a command speaks to, with the token for it.

    This is the hub at ``url`` or FANFARE_PUBLIC_URL, or else the one that runs on this
    environment's database. A hub that is named is sent FANFARE_ADMIN_TOKEN. Otherwise a
    token goes only to a server that proves to be the hub on this database or, if none
    runs on it, to have the same FANFARE_ADMIN_TOKEN. Raises `Failure`.
    """
    settings = read_settings()
    named = _named_url(url, settings)
    if named is not None and settings.admin_token:
        return Hub(url=named, token=settings.admin_token)
    if named is None and settings.admin_token and _running(settings) is None:
        return Hub(url=_listening_url(settings), token=settings.admin_token)
    proven = _proven_url(named, settings)
    token = settings.admin_token or _stored_token(settings)
    if token is None:
        path = token_file(settings.local_path)
        raise Failure(
            f"{path} does not exist, because the hub was given its token; set"
            f" {PREFIX}ADMIN_TOKEN"
        )
    return Hub(url=proven, token=token)


def find_stream(url: str | None) -> Hub:
    """Like `find_hub`, but the token may be "": public topics need none."""
    settings = read_settings()
    named = _named_url(url, settings)
    if settings.admin_token:
        return find_hub(url)
    try:
        proven = _proven_url(named, settings)
    except HubUnreachable:
        if named is None:
            raise
        return Hub(url=named, token="")
    return Hub(url=proven, token=_stored_token(settings) or "")


def _named_url(given: str | None, settings: Settings) -> str | None:
    """Return the given URL, or else FANFARE_PUBLIC_URL, or None if there is neither.

    It has no trailing slash. Raises `click.UsageError` for a bad URL.
    """
    if not given:
        return settings.public_url or None
    try:
        url = origin_url(given)
    except ValueError as error:
        raise click.UsageError(f"--url: {error}") from error
    if "@" in urlsplit(url).netloc or not url.isprintable() or " " in url:
        raise click.UsageError("--url: expected a URL without user name and blanks")
    return url


def _proven_url(named: str | None, settings: Settings) -> str:
    """Return the URL of the hub on this database, which has just proved to be that hub.

    Raises `HubUnreachable`.
    """
    address = _running(settings)
    # A server elsewhere could pass the challenge on to the hub, and its answer back.
    if address is None or (named is not None and not _is_at(address, named)):
        if named is not None:
            Hub(url=named, token="").reach("GET", "/healthz")
        raise _nothing_runs(named, settings)
    url = address.url
    challenge = secrets.token_hex(24)
    path = f"{IDENTITY_PATH}?challenge={challenge}"
    answer = Hub(url=url, token="").reach("GET", path)
    if not is_proof(address, challenge, _proof(*answer)):
        raise _is_another(url, settings)
    return url


def _listening_url(settings: Settings) -> str:
    """Return the URL of a hub that has just proved to have FANFARE_ADMIN_TOKEN.

    Raises `HubUnreachable`.
    """
    url = listening_url(settings.host, settings.port)
    try:
        is_proved = Hub(url=url, token=settings.admin_token).has_proved_token()
    except HubUnreachable as error:
        raise _nothing_runs(None, settings) from error
    if not is_proved:
        raise HubUnreachable(
            f"the server at {url} did not prove that it has {PREFIX}ADMIN_TOKEN, and"
            " was not sent it; if it is your hub, name it with --url"
        )
    return url


def _is_at(address: HubAddress, named: str) -> bool:
    """Return whether ``named`` is the hub's own URL, or its port on this machine."""
    if named in (address.url, address.public_url):
        return True
    own, other = urlsplit(address.url), urlsplit(named)
    return own.port == other.port and other.hostname in _THIS_MACHINE


def _running(settings: Settings) -> HubAddress | None:
    try:
        return read_address(address_file(settings.local_path))
    except AddressUnreadable as error:
        raise Failure(str(error)) from error


def _nothing_runs(named: str | None, settings: Settings) -> HubUnreachable:
    database = settings.database_name
    if named is not None:
        return HubUnreachable(
            f"{named} is not known to be the hub on {database}, so it was sent no"
            f" token; set {PREFIX}ADMIN_TOKEN or {PREFIX}ADMIN_TOKEN_FILE for {named}"
        )
    return HubUnreachable(
        f"no hub runs on {database}{_nor_at(settings)}; start one with `fanfare serve`,"
        f" or name another database with {PREFIX}DATABASE, or a hub with --url and"
        f" {PREFIX}ADMIN_TOKEN"
    )


def _nor_at(settings: Settings) -> str:
    """Return the end of a message: where else no hub was found.

    It is "" without FANFARE_ADMIN_TOKEN: a hub is looked for there only with it.
    """
    url = listening_url(settings.host, settings.port)
    return f", and none answers at {url}" if settings.admin_token else ""


def _is_another(url: str, settings: Settings) -> HubUnreachable:
    return HubUnreachable(
        f"the server at {url} is not the hub on {settings.database_name},"
        f" and was sent no token; for another hub set {PREFIX}ADMIN_TOKEN and name it"
        " with --url"
    )


def _stored_token(settings: Settings) -> str | None:
    try:
        return read_token(token_file(settings.local_path))
    except TokenUnreadable as error:
        raise Failure(str(error)) from error


url_option = click.option(
    "--url",
    help="The URL of the hub.  [FANFARE_PUBLIC_URL; default: that of the hub on"
    " FANFARE_DATABASE]",
)


def speaks_to_hub(
    command: Callable[Concatenate[Hub, Arguments], None],
) -> Callable[..., None]:
    """Give a command ``--url``, and as its first argument the hub to speak to."""

    @url_option
    @functools.wraps(command)
    def call(
        url: str | None, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        command(find_hub(url), *args, **kwargs)

    return call
