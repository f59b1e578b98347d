"""Every operation of ``/api``, once: the right it takes, what it is given, and answers.

The guard of the API and its OpenAPI document are both made from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hub.web.api.delivery_routes import Retry
from hub.web.api.operator_routes import Backup
from hub.web.api.subscription_routes import SubscriptionToAdd
from hub.web.api.token_routes import TokenToAdd
from hub.web.feed_operations import FEED_OPERATIONS
from hub.web.operation import PAGE, Operation, Parameter
from hub.web.publishing.crawler_routes import CollectionsToBuild
from storage.records import Right

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/openapi.json",
        right=None,
        summary="This document",
        answers={200: "object"},
    ),
    *FEED_OPERATIONS,
    Operation(
        method="GET",
        path="/subscriptions",
        right=Right.LIST,
        summary="The account's subscriptions, a page of them",
        answers={200: "Subscriptions"},
        query=(
            *PAGE,
            Parameter(name="topic", help="only those to this topic"),
            Parameter(name="callback", help="only those of this callback"),
            Parameter(name="account", help="only those of this account, by its name"),
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
            replace(PAGE[0], name="stragglers_after", help="a subscription's id"),
            replace(PAGE[0], name="dead_after", help="a dead range's id"),
            PAGE[1],
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
        query=PAGE,
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
