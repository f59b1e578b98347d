"""The doors for other programs, once: the open hub, pings, and hubs of others."""

from __future__ import annotations

from hub.web.open_operation import HTML, JSON, TEXT, OpenOperation
from hub.web.operation import Parameter
from hub.web.websub.ping_routes import MEDIA_TYPE as RPC_TYPE
from protocols.websub.requests import FORMATS
from protocols.websub.signatures import ALGORITHMS
from protocols.websub.subscriber import CONFIRMATION_TYPE

_HUB_FORM = (
    Parameter(
        name="hub.mode",
        help="what is asked",
        choices=("subscribe", "unsubscribe", "publish"),
        is_required=True,
    ),
    Parameter(name="hub.topic", help="the URL of the topic", longest=2_048),
    Parameter(name="hub.callback", help="the subscriber's URL", longest=2_048),
    Parameter(
        name="hub.lease_seconds",
        help="cut to 300 to 2592000",
        kind="integer",
        default=864_000,
        least=0,
    ),
    Parameter(name="hub.secret", help="signs notifications", longest=199),
    Parameter(
        name="hub.signature_algorithm", help="of the signature", choices=ALGORITHMS
    ),
    Parameter(name="hub.verify_token", help="comes back", longest=1_024),
    Parameter(name="format", help="none: the topic as it is", choices=FORMATS),
    Parameter(name="hub.url", help="what has news", is_repeated=True),
)

DOOR_OPERATIONS: tuple[OpenOperation, ...] = (
    OpenOperation(
        method="POST",
        path="/hub",
        summary="The open WebSub hub: subscribe, unsubscribe, publish",
        description="202 whatever will come of it; the link with rel=status leads to"
        " that. A publish request is answered with 204, or by URL where JSON is"
        " accepted. It takes parameters in the query too.",
        form=_HUB_FORM,
        answers={202: {TEXT: "string"}, 204: {}, 200: {JSON: "Pings"}},
        headers={202: {"Link": "the diagnostics of this request, rel=status"}},
        plain_problems=(400, 403, 408, 413, 415, 503),
    ),
    OpenOperation(
        method="POST",
        path="/rpc",
        summary="A blog's ping by XML-RPC: its feed is fetched soon",
        description="A body in XML: weblogUpdates.ping or weblogUpdates.extendedPing,"
        " with up to three URLs. Answered with a struct of flerror and message, or a"
        " fault.",
        answers={200: {RPC_TYPE: "string"}},
        problems=(408, 413, 415, 429),
    ),
    OpenOperation(
        method="GET",
        path="/hub/subscriptions/{token}",
        summary="What became of a request to the open hub",
        answers={200: {JSON: "Diagnosis", HTML: "string"}},
        problems=(404, 429),
    ),
    OpenOperation(
        method="GET",
        path="/upstream/{token}",
        summary="A hub of others asks whether a subscription of this one was meant",
        description="By WebSub, or by rssCloud with url and challenge.",
        query=(
            Parameter(
                name="hub.mode",
                help="what it asks, or tells",
                choices=("subscribe", "unsubscribe", "denied"),
            ),
            Parameter(name="hub.topic", help="of the subscription", longest=2_048),
            Parameter(name="hub.challenge", help="is sent back", longest=1_024),
            Parameter(name="hub.lease_seconds", help="how long it will last"),
            Parameter(name="hub.reason", help="of a denial"),
            Parameter(name="url", help="of rssCloud: the feed", longest=2_048),
            Parameter(name="challenge", help="of rssCloud", longest=1_024),
        ),
        answers={200: {CONFIRMATION_TYPE: "string"}},
        plain_problems=(404, 503),
    ),
    OpenOperation(
        method="POST",
        path="/upstream/{token}",
        summary="A hub of others pushes a feed",
        description="Signed by X-Hub-Signature, of up to 10 MiB; what is not signed"
        " rightly is ignored. Of rssCloud a form with url.",
        answers={202: {}},
        plain_problems=(400, 408, 410, 413, 503),
    ),
)
