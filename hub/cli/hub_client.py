"""The CLI's side of the administration API, over the standard library's HTTP."""

from __future__ import annotations

import functools
import http.client
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit

import click

from hub.admin_token import TokenUnreadable, read_token, token_file
from hub.cli.wording import Failure, HubUnreachable
from hub.runtime.setting_readers import origin_url
from hub.settings import PREFIX, SettingError, Settings, load_settings

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
"""More than the hub ever waits for a fetch."""
LARGEST_ANSWER = 64 * 1024 * 1024
PAGE = 500

Arguments = ParamSpec("Arguments")
Document = dict[str, Any]
"""A JSON object of the API; its members are described in the API reference."""


class HubRefused(Failure):
    """The hub answered that it will not do it, or cannot."""

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
        given = {name: value for name, value in query.items() if value is not None}
        return self._request("GET", f"{path}?{urlencode(given)}" if given else path)

    def read(self, path: str) -> bytes:
        """A document that is not JSON."""
        status, answer = self._reach("GET", path)
        if status != 200:
            raise HubRefused(status, _object(answer) or {})
        return answer

    def post(self, path: str, body: Mapping[str, object] | None = None) -> Document:
        return self._request("POST", path, {} if body is None else body)

    def patch(self, path: str, body: Mapping[str, object]) -> Document:
        return self._request("PATCH", path, body)

    def delete(self, path: str) -> Document:
        return self._request("DELETE", path)

    def each(self, path: str, name: str, **query: object) -> Iterator[Document]:
        """All items of a paged list."""
        after = 0
        while True:
            page = self.get(path, after=after, limit=PAGE, **query)
            yield from page[name]
            if page["next"] is None:
                return
            after = page["next"]

    def _request(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> Document:
        status, answer = self._reach(method, path, body)
        document = _object(answer)
        if document is None:
            raise HubRefused(status, {"detail": f"{self.url} is not a hub"})
        if status >= 400:
            raise HubRefused(status, document)
        return document

    def _reach(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> tuple[int, bytes]:
        try:
            return self._exchange(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise HubUnreachable(
                f"no hub answers at {self.url} ({error or type(error).__name__});"
                " start one with `fanfare serve`, or name it with --url"
            ) from error

    def _exchange(
        self, method: str, path: str, body: Mapping[str, object] | None
    ) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
            connection.sock.settimeout(ANSWER_SECONDS)
            headers = {"Authorization": f"Bearer {self.token}"}
            if body is not None:
                headers["Content-Type"] = "application/json"
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, parts.path + path, payload, headers)
            response = connection.getresponse()
            return response.status, response.read(LARGEST_ANSWER)
        finally:
            connection.close()


def _object(answer: bytes) -> Document | None:
    try:
        document = json.loads(answer)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def read_settings(options: Mapping[str, str | None] | None = None) -> Settings:
    """The settings of this environment; a bad one is wrong usage."""
    try:
        return load_settings(os.environ, options)
    except SettingError as error:
        raise click.UsageError(str(error)) from error


def find_hub(url: str | None) -> Hub:
    """Where the hub is and what opens it, from the option and the environment."""
    settings = read_settings()
    return Hub(
        url=_hub_url(url, settings),
        token=settings.admin_token or _token_beside(settings),
    )


def find_stream(url: str | None) -> Hub:
    """As `find_hub`, where no token is needed: public topics take none.

    A token that lies beside this environment's database is not sent to a hub that
    ``url`` names.
    """
    settings = read_settings()
    token = settings.admin_token
    if not token and url is None:
        token = _stored_token(settings) or ""
    return Hub(url=_hub_url(url, settings), token=token)


def _hub_url(given: str | None, settings: Settings) -> str:
    """Without a slash at the end. A bad one is wrong usage."""
    if not given:
        return settings.public_url or _own_url(settings)
    try:
        url = origin_url(given)
    except ValueError as error:
        raise click.UsageError(f"--url: {error}") from error
    if "@" in urlsplit(url).netloc or not url.isprintable() or " " in url:
        raise click.UsageError("--url: expected a URL without user name and blanks")
    return url


def _own_url(settings: Settings) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - replaces it
    return (
        f"http://[{host}]:{settings.port}"
        if ":" in host
        else (f"http://{host}:{settings.port}")
    )


def _token_beside(settings: Settings) -> str:
    token = _stored_token(settings)
    if token is None:
        path = token_file(settings.database_path)
        raise HubUnreachable(
            f"no hub has run here yet: there is no {path}; start one with"
            f" `fanfare serve`, or set {PREFIX}DATABASE or {PREFIX}ADMIN_TOKEN"
        )
    return token


def _stored_token(settings: Settings) -> str | None:
    try:
        return read_token(token_file(settings.database_path))
    except TokenUnreadable as error:
        raise Failure(str(error)) from error


def speaks_to_hub(
    command: Callable[Concatenate[Hub, Arguments], None],
) -> Callable[..., None]:
    """Give a command ``--url``, and the hub it leads to as first argument."""

    @click.option("--url", help="Where the hub is.  [FANFARE_PUBLIC_URL]")
    @functools.wraps(command)
    def call(
        url: str | None, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        command(find_hub(url), *args, **kwargs)

    return call
