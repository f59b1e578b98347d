"""Every operation of ``/api``, once: the right it takes, what it is given, and answers.

The guard of the API and its OpenAPI document are both made from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hub.core.findings import FindingKind
from hub.services.feeds import LONGEST_WAIT
from hub.web.decoding import DEFAULT_PAGE, LARGEST_ID, LARGEST_PAGE, Document
from hub.web.deliveries import Retry
from hub.web.feeds import FeedToAdd, PageToLookAt
from hub.web.lists import ListsToRead
from hub.web.operations import Backup
from hub.web.scp import CollectionsToBuild
from hub.web.subscriptions import SubscriptionToAdd
from hub.web.tokens import TokenToAdd
from storage.records import FeedState, Right


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the query, or of a form. Numbers go from ``least`` to
    ``largest``; ``longest`` is in characters."""

    name: str
    help: str
    kind: str = "string"
    choices: tuple[str, ...] = ()
    default: int | bool | None = None
    least: int | None = None
    largest: int | None = None
    longest: int | None = None
    is_required: bool = False
    is_repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method on a path below ``/api``. ``right`` None: everybody may."""

    method: str
    path: str
    right: Right | None
    summary: str
    answers: Mapping[int, str]  # the shape of the answer by status
    query: tuple[Parameter, ...] = ()
    body: type[Document] | None = None
    problems: tuple[int, ...] = field(default=())  # besides those all have


_PAGE = (
    Parameter(
        name="after",
        help="the page behind this id",
        kind="integer",
        default=0,
        least=0,
        largest=LARGEST_ID,
    ),
    Parameter(
        name="limit",
        help="the length of the page",
        kind="integer",
        default=DEFAULT_PAGE,
        least=1,
        largest=LARGEST_PAGE,
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/openapi.json",
        right=None,
        summary="This document",
        answers={200: "object"},
    ),
    Operation(
        method="GET",
        path="/feeds",
        right=Right.ADMIN,
        summary="The feeds, a page of them",
        answers={200: "Feeds"},
        query=(
            *_PAGE,
            Parameter(name="state", help="only these", choices=tuple(FeedState)),
            Parameter(name="url", help="only the one behind this topic"),
        ),
        problems=(422,),
    ),
    Operation(
        method="POST",
        path="/feeds",
        right=Right.ADMIN,
        summary="Add a feed, and say what its first fetch found",
        answers={201: "AddedFeed", 200: "AddedFeed", 300: "FeedChoices"},
        query=(
            Parameter(
                name="wait",
                help="seconds to wait for the first fetch",
                kind="integer",
                default=int(LONGEST_WAIT),
                least=0,
                largest=int(LONGEST_WAIT),
            ),
        ),
        body=FeedToAdd,
        problems=(409,),
    ),
    Operation(
        method="GET",
        path="/findings",
        right=Right.ADMIN,
        summary="Of a page of the feeds, those that something may be done about",
        answers={200: "FeedFindings"},
        query=(
            *_PAGE,
            Parameter(name="kind", help="only this", choices=tuple(FindingKind)),
        ),
        problems=(422,),
    ),
    Operation(
        method="POST",
        path="/lists",
        right=Right.ADMIN,
        summary="Read lists of feeds in OPML, with those that they include",
        answers={200: "WalkedLists"},
        body=ListsToRead,
    ),
    Operation(
        method="POST",
        path="/discover",
        right=Right.ADMIN,
        summary="Say what feed is at a URL, or which ones are named there",
        answers={200: "Sight"},
        body=PageToLookAt,
    ),
    Operation(
        method="GET",
        path="/feeds/{id}",
        right=Right.ADMIN,
        summary="One feed, and why it is polled when it is",
        answers={200: "FeedReport"},
        problems=(404,),
    ),
    Operation(
        method="GET",
        path="/feeds/{id}/raw",
        right=Right.ADMIN,
        summary="The last valid document of a feed in the creator format, as it came",
        answers={200: "object"},
        problems=(404,),
    ),
    Operation(
        method="GET",
        path="/feeds/{id}/plan",
        right=Right.ADMIN,
        summary="When one feed is polled next, and why, with every number",
        answers={200: "FeedPlan"},
        problems=(404,),
    ),
    Operation(
        method="DELETE",
        path="/feeds/{id}",
        right=Right.ADMIN,
        summary="Remove a feed and end its subscriptions",
        answers={200: "SubscriptionsEnded"},
        problems=(404,),
    ),
    Operation(
        method="POST",
        path="/feeds/{id}/fetch",
        right=Right.ADMIN,
        summary="Fetch a feed now",
        answers={200: "FetchedFeed"},
        problems=(404, 409),
    ),
    Operation(
        method="POST",
        path="/feeds/{id}/pause",
        right=Right.ADMIN,
        summary="Stop polling a feed",
        answers={200: "Feed"},
        problems=(404, 409),
    ),
    Operation(
        method="POST",
        path="/feeds/{id}/resume",
        right=Right.ADMIN,
        summary="Poll a feed again",
        answers={200: "Feed"},
        problems=(404, 409),
    ),
    Operation(
        method="GET",
        path="/subscriptions",
        right=Right.LIST,
        summary="The account's subscriptions, a page of them",
        answers={200: "Subscriptions"},
        query=(
            *_PAGE,
            Parameter(name="topic", help="only those to this topic"),
            Parameter(name="callback", help="only those of this callback"),
        ),
        problems=(422,),
    ),
    Operation(
        method="POST",
        path="/subscriptions",
        right=Right.SUBSCRIBE,
        summary="Subscribe a callback, or change how it is subscribed",
        answers={201: "Subscribed", 200: "Subscribed"},
        body=SubscriptionToAdd,
    ),
    Operation(
        method="GET",
        path="/subscriptions/{id}",
        right=Right.LIST,
        summary="One subscription with its last attempts",
        answers={200: "SubscriptionReport"},
        problems=(404,),
    ),
    Operation(
        method="DELETE",
        path="/subscriptions/{id}",
        right=Right.UNSUBSCRIBE,
        summary="End a subscription",
        answers={200: "Subscription"},
        query=(
            Parameter(
                name="tell",
                help="whether the callback is sent a denial",
                kind="boolean",
                default=True,
            ),
        ),
        problems=(404, 422),
    ),
    Operation(
        method="GET",
        path="/deliveries",
        right=Right.ADMIN,
        summary="What is late, and what was given up",
        answers={200: "Deliveries"},
        query=(
            replace(_PAGE[0], name="stragglers_after", help="a subscription's id"),
            replace(_PAGE[0], name="dead_after", help="a dead range's id"),
            _PAGE[1],
        ),
        problems=(422,),
    ),
    Operation(
        method="POST",
        path="/deliveries/retry",
        right=Right.ADMIN,
        summary="Try a late subscription, or a dead range, now",
        answers={202: "Retried"},
        body=Retry,
        problems=(404, 409),
    ),
    Operation(
        method="GET",
        path="/tokens",
        right=Right.ADMIN,
        summary="The tokens of all accounts, without what they are",
        answers={200: "Tokens"},
        query=_PAGE,
        problems=(422,),
    ),
    Operation(
        method="POST",
        path="/tokens",
        right=Right.ADMIN,
        summary="Make a token; only this answer shows it",
        answers={201: "CreatedToken"},
        body=TokenToAdd,
    ),
    Operation(
        method="DELETE",
        path="/tokens/{id}",
        right=Right.ADMIN,
        summary="Revoke a token",
        answers={200: "Token"},
        problems=(404,),
    ),
    Operation(
        method="GET",
        path="/health",
        right=Right.ADMIN,
        summary="Whether the hub can work, and what waits",
        answers={200: "Health"},
    ),
    Operation(
        method="POST",
        path="/db/backup",
        right=Right.ADMIN,
        summary="Copy the database to a new file on the hub's machine",
        answers={201: "BackupMade"},
        body=Backup,
        problems=(409,),
    ),
    Operation(
        method="POST",
        path="/scp/build",
        right=Right.ADMIN,
        summary="Build collections for crawlers now",
        answers={201: "CollectionsBuilt"},
        body=CollectionsToBuild,
        problems=(409,),
    ),
)

RIGHTS: Mapping[tuple[str, str], Right | None] = {
    (each.method, each.path): each.right for each in OPERATIONS
}
"""What the guard of the API asks of a token, by method and path."""
