"""Requests to a hub as values, and what their answers mean; the clients send them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import httpx2

T = TypeVar("T")
MOST_ITEMS = 50
"""Most entries that the hub returns in one answer."""


class HubUnavailable(Exception):
    """The hub cannot be reached, or cannot work now; trying again may help."""


class RequestRefused(Exception):
    """The hub understood the request and refused it.

    ``status`` is an HTTP status, or the code that a websocket was closed with;
    ``field`` is the parameter at fault, or "".
    """

    def __init__(self, status: int, detail: str, field: str = "") -> None:
        self.status = status
        self.detail = detail
        self.field = field
        super().__init__(f"{status}: {detail}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSubscription:
    """A subscription of the account. ``state`` is ``active`` or says how it ended."""

    id: int
    topic: str
    callback: str
    format: str
    updates: str
    state: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        return cls(**{name: document[name] for name in cls.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class HubCall(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, str | int] | None = None
    body: Mapping[str, Any] | None = None

    def answer(self, response: httpx2.Response) -> T:
        """Return what was answered. Raises `RequestRefused` and `HubUnavailable`."""
        if response.status_code in (429, 502, 503, 504):
            raise HubUnavailable(_refusal(response).args[0])
        if not response.is_success:
            raise _refusal(response)
        return self.read(response.json() if response.content else None)


def _refusal(response: httpx2.Response) -> RequestRefused:
    try:
        problem = response.json()
        detail, field = str(problem["detail"]), str(problem.get("field", ""))
    except (ValueError, KeyError, TypeError):
        detail, field = response.text[:500] or response.reason_phrase, ""
    return RequestRefused(response.status_code, detail, field)


def subscribe(
    topic: str, callback: str, secret: str | None, format: str, updates: str
) -> HubCall[HubSubscription]:
    body = {"topic": topic, "callback": callback, "format": format, "updates": updates}
    if secret is not None:
        body["secret"] = secret
    return HubCall(
        method="POST", path="/api/subscriptions", read=HubSubscription.of, body=body
    )


def unsubscribe(subscription_id: int) -> HubCall[None]:
    path = f"/api/subscriptions/{subscription_id}"
    return HubCall(method="DELETE", path=path, read=lambda _: None)


def replay(subscription_id: int, record: int, since: str) -> HubCall[int]:
    if bool(record) == bool(since):
        raise ValueError("record, since: expected one of them")
    return HubCall(
        method="POST",
        path=f"/api/subscriptions/{subscription_id}/replay",
        read=lambda lag: int(lag["records"]),
        body={"record": record} if record else {"since": since},
    )


def retrieve(
    topic: str, count: int, before: str, after: str
) -> HubCall[list[dict[str, Any]]]:
    if not 1 <= count <= MOST_ITEMS:
        raise ValueError(f"count: expected 1 to {MOST_ITEMS}, not {count}")
    params: dict[str, str | int] = {
        "hub.mode": "retrieve",
        "hub.topic": topic,
        "count": count,
        "format": "json",
    }
    params |= {"before": before} if before else {}
    params |= {"after": after} if after else {}
    return HubCall(
        method="GET", path="/", read=lambda found: found.get("items", []), params=params
    )
