"""``/api/feeds/{id}/entries`` and ``/parse``: a feed's entries, and its document."""

from __future__ import annotations

from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.services.feed_documents import (
    ExplainedDocument,
    FeedDocumentService,
    FeedEntries,
    FeedEntry,
)
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import LARGEST_ID, path_id, query_limit, query_number
from storage.records import EntryId, FeedId, TokenScope


class FeedEntryJson(JsonObject):
    """An entry as it is now.

    ``revision``: the number of its forms so far, with this one; ``guid``: what its feed
    calls it; ``url``: "" if it links nowhere.
    """

    id: int
    guid: str
    title: str
    url: str
    published: Time | None
    updated: Time | None
    revision: int

    @classmethod
    def of_entry(cls, found: FeedEntry) -> Self:
        entry = found.entry
        links = (each.href for each in entry.links if each.rel == "alternate")
        return cls.of(
            entry,
            id=found.id,
            guid=entry.id,
            url=next(links, ""),
            revision=found.revision,
        )


class FeedEntriesJson(JsonObject):
    """Entries of a feed, newest first; ``next`` is the ``before`` of the next page."""

    id: int
    url: str
    entries: list[FeedEntryJson]
    next: int | None

    @classmethod
    def of_entries(cls, found: FeedEntries) -> Self:
        entries = [FeedEntryJson.of_entry(each) for each in found.entries]
        return cls.of(found.feed, entries=entries, next=found.next)


class EncodingJson(JsonObject):
    """The encoding in which a document was read.

    ``source``: what named it; ``claims``: all that was said of the encoding.
    """

    name: str
    source: str
    claims: list[str]
    problem: str


class EntryRuleJson(JsonObject):
    """By which rule an entry is known, and why not by an earlier one."""

    title: str
    id: str
    rule: str
    why: str


class DocumentExplanationJson(JsonObject):
    """How a document was read.

    ``problems``: repairs, and entries that were left out; ``dropped``: values that are
    not in the entries.
    """

    format: str
    path: str
    problems: list[str]
    dropped: list[str]
    left_out: int
    entries: list[EntryRuleJson]


class ExplainedDocumentJson(JsonObject):
    """A feed's document, fetched just now. ``error``: why there is none, or no feed."""

    id: int
    url: str
    fetched_url: str
    at: Time
    status: int
    content_type: str
    size: int
    error: str
    encoding: EncodingJson | None
    explanation: DocumentExplanationJson | None

    @classmethod
    def of_document(cls, found: ExplainedDocument) -> Self:
        made, encoding = found.explanation, found.encoding
        return cls.of(
            found,
            id=found.feed.id,
            url=found.feed.url,
            fetched_url=found.url,
            encoding=encoding
            and EncodingJson.of(encoding, claims=list(encoding.claims)),
            explanation=made
            and DocumentExplanationJson.of(
                made,
                problems=list(made.problems),
                dropped=list(made.dropped),
                entries=[EntryRuleJson.of(each) for each in made.entries],
            ),
        )


BEFORE = Parameter(
    name="before",
    help="next of the page before",
    kind="integer",
    least=1,
    largest=LARGEST_ID,
)


def query_before(request: Request) -> EntryId | None:
    """The id before which the page begins; None: the first page.

    Raises `InvalidValue`.
    """
    before = query_number(request, "before", 0, LARGEST_ID)
    return EntryId(before) if before else None


class FeedDocumentRoutes(Routes):
    tag = "documents"

    def __init__(self, documents: FeedDocumentService) -> None:
        self._documents = documents

    @ApiOperation(
        method="GET",
        path="/feeds/{id}/entries",
        id="list_feed_entries",
        scope=TokenScope.ADMIN,
        summary="List the entries of a feed, newest first, with their revisions",
        answers={200: FeedEntriesJson},
        query=(BEFORE, PAGE[1]),
        problems=(404,),
    )
    async def entries(self, request: Request) -> Response:
        found = await self._documents.entries(
            _feed_id(request), query_limit(request), query_before(request)
        )
        return json_response(FeedEntriesJson.of_entries(found))

    @ApiOperation(
        method="POST",
        path="/feeds/{id}/parse",
        id="parse_feed",
        scope=TokenScope.ADMIN,
        summary="Fetch a feed's document, and explain how it is read",
        description="It is fetched with its credentials and at its host's pace;"
        " nothing of it is kept. `fetched_url`, `status`, `content_type`, `size`,"
        " `error` (why it is no feed, or was not had), `encoding` (null without an"
        " answer), and `explanation` (null unless it is a feed): `format`, `path`"
        " (what read it), `problems` (repairs), `dropped` (values that are not in the"
        " entries), `left_out` entries, and of each of the `entries` the `rule` that"
        " its `id` is by. 409 for what is read by many requests, or not fetched.",
        answers={200: ExplainedDocumentJson},
        problems=(404, 409),
    )
    async def explain(self, request: Request) -> Response:
        """Explain how the document is read; it changes nothing about the feed."""
        found = await self._documents.explain(_feed_id(request))
        return json_response(ExplainedDocumentJson.of_document(found))


def _feed_id(request: Request) -> FeedId:
    return FeedId(path_id(request, "feed"))
