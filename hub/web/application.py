"""The ASGI application: every surface of the hub on one origin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from hub.hub_address import IDENTITY_PATH
from hub.runtime.metrics import RequestMeter
from hub.services import Services
from hub.services.service_errors import ServiceError
from hub.web.admin.account_pages import AccountPages
from hub.web.admin.audit_pages import AuditPages
from hub.web.admin.delivery_pages import DeliveryPages
from hub.web.admin.entry_pages import EntryPages
from hub.web.admin.feed_document_pages import FeedDocumentPages
from hub.web.admin.feed_pages import FeedPages
from hub.web.admin.import_pages import ImportPages
from hub.web.admin.live_pages import LivePages, TailStreams
from hub.web.admin.login_pages import LoginPages, LogoutPages
from hub.web.admin.output_pages import OutputPages
from hub.web.admin.overview_page import OverviewPages
from hub.web.admin.own_account_pages import OwnAccountPages
from hub.web.admin.page_access import PageAccess
from hub.web.admin.page_streams import PageStreams
from hub.web.admin.plan_pages import PlanPages
from hub.web.admin.playground_pages import PlaygroundPages
from hub.web.admin.push_hub_pages import PushHubPages
from hub.web.admin.setting_pages import SettingPages
from hub.web.admin.subscription_pages import SubscriptionPages
from hub.web.admin.token_pages import TokenPages
from hub.web.admin.track_pages import TrackPages
from hub.web.api.account_routes import AccountRoutes
from hub.web.api.api_pages import ApiPages
from hub.web.api.audit_routes import AuditRoutes
from hub.web.api.connection_routes import ConnectionRoutes
from hub.web.api.database_routes import DatabaseRoutes
from hub.web.api.delivery_routes import DeliveryRoutes
from hub.web.api.entry_routes import EntryRoutes
from hub.web.api.feed_document_routes import FeedDocumentRoutes
from hub.web.api.feed_routes import FeedRoutes
from hub.web.api.list_routes import FeedListRoutes
from hub.web.api.openapi import SCOPES, OpenApiRoutes, openapi_document
from hub.web.api.operator_routes import OperatorRoutes
from hub.web.api.output_routes import OutputRoutes
from hub.web.api.plan_routes import PlanRoutes
from hub.web.api.playground_routes import PlaygroundRoutes
from hub.web.api.search_routes import SearchRoutes
from hub.web.api.series_routes import SeriesRoutes
from hub.web.api.subscription_routes import SubscriptionRoutes
from hub.web.api.token_routes import TokenRoutes
from hub.web.audited_requests import SAFE_METHODS, AuditRequests
from hub.web.authentication import Authenticator, RequireScope
from hub.web.cross_origin import CrossOriginMiddleware
from hub.web.middleware import (
    AccessLog,
    ContinueTraces,
    CountReaders,
    LimitReads,
    LimitRequests,
    LoopGuard,
    MeasureRequests,
)
from hub.web.monitoring_routes import MonitoringRoutes
from hub.web.page_rendering import AssetRoutes, answer_error, answer_problem
from hub.web.problems import Problem
from hub.web.publishing.crawler_routes import CrawlerRoutes
from hub.web.publishing.openfeeder_routes import (
    CONTENT,
    DISCOVERY,
    UPDATE,
    OpenFeederRoutes,
)
from hub.web.publishing.reader_routes import ReaderRoutes
from hub.web.publishing.topic_routes import TopicRoutes
from hub.web.rate_limits import RateLimits
from hub.web.streams.event_stream import EventStream
from hub.web.streams.stream_routes import StreamRoutes
from hub.web.superfeedr.endpoint import (
    SuperfeedrMiddleware,
    create_modes,
    is_for_api,
)
from hub.web.websub.hub_routes import HubMiddleware, HubRoutes
from hub.web.websub.ping_routes import PingRoutes
from hub.web.websub.playground_endpoints import PlaygroundEndpoints
from hub.web.websub.push_routes import PushRoutes
from protocols.protocol_errors import ProtocolError
from protocols.superfeedr.parameters import Lengths
from storage.errors import StorageError

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

SHOWN_PATH = 100


async def find_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 404, to websockets too: Starlette would close those with a bare 403."""
    raise HTTPException(HTTPStatus.NOT_FOUND)


async def answer_not_found(request: Request, error: Exception) -> Response:
    path = request.url.path[:SHOWN_PATH]
    problem = Problem(HTTPStatus.NOT_FOUND, f"no such path: {path}")
    return answer_problem(request, problem)


def wrong_method_answer(
    top: Sequence[BaseRoute], mounted: Sequence[BaseRoute]
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return an exception handler that answers 405 to a method that no route takes.

    Its ``Allow`` names the methods of all routes with that path (RFC 9110 15.5.6);
    Starlette itself names only those of the first one.
    """

    async def answer(request: Request, error: Exception) -> Response:
        routes = mounted if request.scope.get("root_path") else top
        methods = {
            method
            for route in routes
            if isinstance(route, Route) and _has_path(route, request)
            for method in route.methods or ()
        }
        allowed = ", ".join(sorted(methods))
        problem = Problem(
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"expected {allowed}, not {request.method[:SHOWN_PATH]}",
            headers={"Allow": allowed},
        )
        return answer_problem(request, problem)

    return answer


def _has_path(route: Route, request: Request) -> bool:
    return route.matches(request.scope)[0] is not Match.NONE


UNCOUNTED = (
    "/api/",
    "/admin/",
    "/account/",
    "/healthz",
    "/readyz",
    "/metrics",
    IDENTITY_PATH,
)
"""Paths whose requests `LimitRequests` does not count.

``/api``, ``/admin`` and ``/account`` count their own requests, by token too.
"""
COUNTED_THERE = (CONTENT, DISCOVERY, UPDATE)
"""Paths counted by `OpenFeederRoutes`, whose answers say how many requests are left."""


def create_application(
    services: Services,
    token: str,
    limits: RateLimits | None = None,
    lengths: Lengths | None = None,
    public_url: str = "",
    identity_key: str = "",
    *,
    meter: RequestMeter | None = None,
    streams: PageStreams | None = None,
    logs_requests: bool = False,
    origins: tuple[str, ...] = (),
    traces: Traces | None = None,
) -> Starlette:
    """Create the application: all routes with all middleware.

    ``token``: the admin token. ``limits``: None for no limits of requests. ``lengths``:
    the longest topic and callback of the Superfeedr-compatible API. ``public_url``: by
    this URL the hub recognizes its own requests, and refuses them. ``identity_key``:
    proves to a command that this is the hub it looks for. ``meter``: counts requests.
    ``streams``: sends changes to open pages; the caller runs it. ``logs_requests``:
    whether there is an access log. ``origins``: other origins whose pages may use the
    API. ``traces``: None for no traces.
    """
    limits = limits or RateLimits()
    meter = meter or RequestMeter()
    authenticator = Authenticator(services.tokens, token)
    api = [
        *FeedRoutes(
            services.feeds,
            services.feed_reports,
            services.feed_exports,
            services.selected_feeds,
            services.push_hub_reports,
            services.clock,
        ).routes(),
        *FeedDocumentRoutes(services.feed_documents).routes(),
        *FeedListRoutes(services.lists, services.list_watches).routes(),
        *SubscriptionRoutes(
            services.subscriptions,
            services.event_subscriptions,
            services.feed_reports,
            services.delivery_reports,
            services.trials,
            services.tokens,
            services.selected_subscriptions,
            services.clock,
        ).routes(),
        *DeliveryRoutes(
            services.delivery_lists,
            services.delivery_reports,
            services.trials,
            services.undelivered,
            services.clock,
        ).routes(),
        *PlanRoutes(services.plans, services.tokens, services.clock).routes(),
        *PlaygroundRoutes(services.playground).routes(),
        *AccountRoutes(services.account_reports).routes(),
        *TokenRoutes(services.tokens, services.sessions).routes(),
        *OperatorRoutes(
            services.operations, services.collections, services.settings
        ).routes(),
        *SearchRoutes(services.search).routes(),
        *EntryRoutes(
            services.committed_entries,
            services.entry_reports,
            services.feed_reports,
            services.clock,
        ).routes(),
        *SeriesRoutes(services.series, services.clock).routes(),
        *DatabaseRoutes(services.database_jobs).routes(),
        *OutputRoutes(services.outputs).routes(),
        *AuditRoutes(services.audit, services.tokens, services.clock).routes(),
        *ConnectionRoutes(services.connections).routes(),
        *OpenApiRoutes().routes(),
    ]
    guard = [
        Middleware(
            RequireScope,
            authenticator=authenticator,
            limits=limits,
            routes=api,
            scopes=SCOPES,
            origins=origins,
        ),
    ]
    websub = HubRoutes(services.websub, services.playground, limits, services.clock)
    known_errors = (
        Problem,
        HTTPException,
        ServiceError,
        ProtocolError,
        StorageError,
        Exception,
    )
    access = PageAccess(services.sessions, limits, public_url, streams or PageStreams())
    top = [
        *AssetRoutes().routes(),
        *LoginPages(access, authenticator, limits).routes(),
        *LogoutPages(access).routes(),
        *OverviewPages(
            access, services.operations, services.series, services.clock
        ).routes(),
        *FeedPages(
            access,
            services.feeds,
            services.feed_reports,
            services.feed_documents,
            services.selected_subscriptions,
            services.selected_feeds,
            services.clock,
        ).routes(),
        *FeedDocumentPages(
            access, services.feed_documents, services.feeds, services.clock
        ).routes(),
        *ImportPages(
            access, services.feed_imports, services.feed_exports, services.clock
        ).routes(),
        *SubscriptionPages(
            access,
            services.subscriptions,
            services.delivery_reports,
            services.trials,
            services.undelivered,
            services.tokens,
            services.selected_subscriptions,
            services.clock,
        ).routes(),
        *DeliveryPages(
            access,
            services.delivery_lists,
            services.selected_subscriptions,
            services.delivery_reports,
            services.undelivered,
            services.clock,
        ).routes(),
        *PlanPages(
            access,
            services.plans,
            services.tokens,
            services.clock,
        ).routes(),
        *AccountPages(
            access, services.account_reports, services.tokens, services.clock
        ).routes(),
        *TokenPages(
            access,
            services.tokens,
            services.websub.policy,
            services.clock,
        ).routes(),
        *EntryPages(
            access,
            services.committed_entries,
            services.entry_reports,
            services.feed_reports,
            services.series,
            services.clock,
        ).routes(),
        *TrackPages(
            access, services.search, services.public.public_url, services.clock
        ).routes(),
        *PlaygroundPages(access, services.playground, services.clock).routes(),
        *PushHubPages(access, services.push_hub_reports, services.clock).routes(),
        *OutputPages(
            access, services.outputs, services.collections, services.clock
        ).routes(),
        *AuditPages(access, services.audit, services.tokens, services.clock).routes(),
        *TailStreams(
            access, EventStream(services.live, authenticator, limits)
        ).routes(),
        *LivePages(access, services.connections, services.clock).routes(),
        *SettingPages(access, services.settings, services.clock).routes(),
        *OwnAccountPages(
            access,
            services.account_reports,
            services.selected_subscriptions,
            services.clock,
        ).routes(),
        *MonitoringRoutes(
            services.conditions, services.metrics, identity_key, token, limits
        ).routes(),
        *StreamRoutes(services.live, authenticator, limits=limits).routes(),
        *websub.routes(),
        *PingRoutes(services.hints).routes(),
        *PushRoutes(services.upstream).routes(),
        *PlaygroundEndpoints(services.playground).routes(),
        *TopicRoutes(services.public).routes(),
        *ReaderRoutes(services.readers).routes(),
        *ApiPages(openapi_document, services.public.public_url).routes(),
        *CrawlerRoutes(services.collections).routes(),
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
    mounted = Router(api, redirect_slashes=False, default=find_nothing)
    application = Starlette(
        routes=[*top, Mount("/api", app=mounted, middleware=guard)],
        middleware=[
            *(
                [Middleware(AccessLog, limits=limits, clock=services.clock)]
                if logs_requests
                else []
            ),
            *([Middleware(ContinueTraces, traces=traces)] if traces else []),
            Middleware(LimitReads),
            Middleware(MeasureRequests, meter=meter, clock=services.clock),
            Middleware(LoopGuard, public_url=public_url),
            Middleware(CrossOriginMiddleware, origins=origins),
            Middleware(
                LimitRequests,
                limits=limits,
                authenticator=authenticator,
                covers=_is_counted,
            ),
            Middleware(HubMiddleware, websub=websub),
            Middleware(CountReaders, readers=services.output_readers),
            Middleware(
                AuditRequests,
                trail=services.audit,
                limits=limits,
                clock=services.clock,
                covers=_may_change,
            ),
            Middleware(
                SuperfeedrMiddleware,
                modes=create_modes(services, limits),
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
    application.router.default = find_nothing
    return application


def _may_change(scope: Scope) -> bool:
    """Whether a request may change something: any method of Superfeedr's API may."""
    return scope["method"] not in SAFE_METHODS or is_for_api(scope)


def _is_counted(path: str) -> bool:
    return not path.startswith(UNCOUNTED) and path not in COUNTED_THERE
