"""The operations of ``/api`` on feeds, and on what may become one."""

from __future__ import annotations

from hub.core.findings import FindingKind
from hub.services.feed_requests import LONGEST_WAIT
from hub.web.api.feed_routes import (
    FeedsToAdd,
    FeedToAdd,
    FeedToEdit,
    ListsToRead,
    PageToLookAt,
)
from hub.web.decoding import DEFAULT_PAGE, LARGEST_PAGE
from hub.web.operation import PAGE, Operation, Parameter
from storage.records import FeedState, Right

FEED_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/feeds",
        right=Right.ADMIN,
        summary="The feeds, a page of them",
        answers={200: "Feeds"},
        query=(
            *PAGE,
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
        method="POST",
        path="/imports",
        right=Right.ADMIN,
        summary="Add many feeds, and say what became of each",
        answers={200: "ImportedFeeds"},
        query=(
            Parameter(
                name="wait",
                help="seconds to wait for each first fetch",
                kind="integer",
                default=0,
                least=0,
                largest=int(LONGEST_WAIT),
            ),
        ),
        body=FeedsToAdd,
    ),
    Operation(
        method="GET",
        path="/findings",
        right=Right.ADMIN,
        summary="Of a page of the feeds, those that something may be done about",
        answers={200: "FeedFindings"},
        query=(
            *PAGE,
            Parameter(name="kind", help="only this", choices=tuple(FindingKind)),
        ),
        problems=(422,),
    ),
    Operation(
        method="GET",
        path="/hubs",
        right=Right.ADMIN,
        summary="Hubs of others that push feeds, and what they were asked and told",
        answers={200: "PushHubs"},
        query=(
            Parameter(
                name="limit",
                help="hubs, those with the most subscriptions first",
                kind="integer",
                default=DEFAULT_PAGE,
                least=0,
                largest=LARGEST_PAGE,
            ),
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
        method="PATCH",
        path="/feeds/{id}",
        right=Right.ADMIN,
        summary="Change what a feed is, and say what follows from it",
        answers={200: "EditedFeed"},
        body=FeedToEdit,
        problems=(404, 409),
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
)
