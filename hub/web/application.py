"""The ASGI application: every surface of the hub on one origin."""

from __future__ import annotations

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Mount, Router

from hub.services import Services
from hub.services.errors import ServiceError
from hub.web.api_operations import RIGHTS
from hub.web.authentication import Authenticator, RequireRight
from hub.web.deliveries import DeliveryRoutes
from hub.web.feeds import FeedRoutes
from hub.web.front import FrontRoutes
from hub.web.lists import ListRoutes
from hub.web.metrics import MetricsRoutes
from hub.web.openapi import OpenApiRoutes
from hub.web.openfeeder import CONTENT, DISCOVERY, UPDATE, OpenFeederRoutes
from hub.web.operations import OperationsRoutes
from hub.web.own_requests import RefuseOwnRequests
from hub.web.problems import Problem, answer_error
from hub.web.public import PublicRoutes
from hub.web.rate_limits import RateLimits
from hub.web.request_limits import LimitRequests
from hub.web.routing import answer_not_found, wrong_method_answer
from hub.web.scp import ScpRoutes
from hub.web.stream import StreamRoutes
from hub.web.subscriptions import SubscriptionRoutes
from hub.web.superfeedr.door import SuperfeedrDoor
from hub.web.superfeedr.table import create_modes
from hub.web.tokens import TokenRoutes
from hub.web.upstream import UpstreamRoutes
from hub.web.weblog_pings import WeblogPingRoutes
from hub.web.websub import HubDoor, WebSubRoutes
from protocols.errors import ProtocolError
from protocols.superfeedr.parameters import Lengths
from storage.errors import StorageError

UNCOUNTED = ("/api/", "/healthz", "/readyz", "/metrics")
"""Paths that `LimitRequests` leaves alone: ``/api`` counts by itself, by token too;

and OpenFeeder does, which tells how many requests are left."""


_COUNTED_THERE = (CONTENT, DISCOVERY, UPDATE)


def create_application(
    services: Services,
    token: str,
    limits: RateLimits | None = None,
    lengths: Lengths | None = None,
    public_url: str = "",
) -> Starlette:
    """``token`` is the administrator's; ``limits`` None: there are none.

    ``lengths``: the longest topic and callback of the Superfeedr-compatible API.
    ``public_url``: by which the hub's own requests are known, and refused.
    """
    limits = limits or RateLimits()
    authenticator = Authenticator(services.tokens, token)
    operations = OperationsRoutes(services.operations)
    scp = ScpRoutes(services.collections)
    api = [
        *FeedRoutes(services.feeds, services.feed_reports).routes(),
        *ListRoutes(services.lists).routes(),
        *SubscriptionRoutes(services.subscriptions, services.tokens).routes(),
        *DeliveryRoutes(services.deliveries).routes(),
        *TokenRoutes(services.tokens).routes(),
        *operations.routes(),
        *scp.routes(),
        *OpenApiRoutes().routes(),
    ]
    guard = [
        Middleware(
            RequireRight,
            authenticator=authenticator,
            limits=limits,
            routes=api,
            rights=RIGHTS,
        )
    ]
    websub = WebSubRoutes(services.websub, limits)
    known_errors = (
        Problem,
        HTTPException,
        ServiceError,
        ProtocolError,
        StorageError,
        Exception,
    )
    top = [
        *FrontRoutes(services.front).routes(),
        *operations.public_routes(),
        *MetricsRoutes(services.metrics).routes(),
        *StreamRoutes(services.live, authenticator, limits=limits).routes(),
        *websub.routes(),
        *WeblogPingRoutes(services.hints).routes(),
        *UpstreamRoutes(services.upstream).routes(),
        *PublicRoutes(services.public).routes(),
        *scp.public_routes(),
        *OpenFeederRoutes(
            services.openfeeder,
            services.hints,
            services.analytics,
            authenticator,
            limits,
        ).routes(),
    ]
    # Redirects to a path with or without a slash would lead to where the request came
    # to, which need not be the public URL.
    mounted = Router(api, redirect_slashes=False)
    application = Starlette(
        routes=[*top, Mount("/api", app=mounted, middleware=guard)],
        middleware=[
            Middleware(RefuseOwnRequests, public_url=public_url),
            Middleware(
                LimitRequests,
                limits=limits,
                authenticator=authenticator,
                covers=_is_counted,
            ),
            Middleware(HubDoor, websub=websub),
            Middleware(
                SuperfeedrDoor,
                modes=create_modes(services),
                authenticator=authenticator,
                lengths=lengths or Lengths(),
            ),
        ],
        exception_handlers={
            **{error: answer_error for error in known_errors},
            HTTPStatus.NOT_FOUND: answer_not_found,
            HTTPStatus.METHOD_NOT_ALLOWED: wrong_method_answer(top, api),
        },
    )
    application.router.redirect_slashes = False
    return application


def _is_counted(path: str) -> bool:
    return not path.startswith(UNCOUNTED) and path not in _COUNTED_THERE
