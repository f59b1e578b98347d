"""Putting the open hub together: the parts that strangers' requests go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import hub
from hub.delivery.callback_pace import CallbackPace
from hub.http import Network
from hub.own_topics import OwnTopics
from hub.parsing.parser import Parser
from hub.polling.handed_over import HandedOver
from hub.polling.poller import Poller
from hub.runtime.background import BackgroundTask
from hub.runtime.clock import Clock
from hub.services import WebSubService
from hub.websub.discovery import Discovery
from hub.websub.intents import Accounts, Intents
from hub.websub.pings import Pings
from hub.websub.questions import Questions
from hub.websub.topics import OpenHub, Topics
from hub.websub.validation import Validation
from hub.websub.verifier import Verifier
from protocols.http import user_agent
from storage.interface import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts of the hub that the open hub works with."""

    storage: Storage
    network: Network
    fetcher: HandedOver
    parser: Parser
    poller: Poller
    clock: Clock
    pace: CallbackPace
    public_url: str
    contact: str

    @property
    def hub_url(self) -> str:
        return f"{self.public_url}/hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltOpenHub:
    """Its use cases, and its parts that run in the background."""

    service: WebSubService
    pings: Pings
    wake_verifier: Callable[[], None]
    background: dict[str, BackgroundTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Asks callbacks whether they want it, and publishers whether they allow it."""

    user_agent: str
    questions: Questions
    validation: Validation


def build_asking(around: Surroundings) -> Asking:
    asking = user_agent(
        f"Fanfare/{hub.__version__}", url=around.hub_url, contact=around.contact
    )
    return Asking(
        user_agent=asking,
        questions=Questions(around.network, around.clock, asking, around.pace),
        validation=Validation(around.storage, around.network, asking, around.pace),
    )


def build_open_hub(
    around: Surroundings,
    asking: Asking,
    accounts: Accounts,
    policy: OpenHub,
    shortest_lease: int,
    secret_overlap: timedelta,
) -> BuiltOpenHub:
    """``accounts``: those whose requests wait for callbacks beside strangers'."""
    topics = Topics(
        around.storage,
        around.poller,
        around.fetcher,
        Discovery(around.parser, around.hub_url),
        around.network,
        around.clock,
        policy,
        asking.user_agent,
        OwnTopics(around.public_url),
    )
    intents = Intents(
        around.storage,
        topics,
        asking.questions,
        around.clock,
        asking.validation,
        accounts,
        secret_overlap,
    )
    verifier = Verifier(around.storage, intents, asking.questions, around.clock)
    pings = Pings(around.poller, around.clock)
    service = WebSubService(
        around.storage,
        verifier.wake,
        pings,
        around.clock,
        policy=policy,
        public_url=around.public_url,
        shortest_lease=shortest_lease,
    )
    return BuiltOpenHub(
        service=service,
        pings=pings,
        wake_verifier=verifier.wake,
        background={"verifier": verifier.run, "pings": pings.run},
    )
