"""What subscribers who want a site as it is are sent: an Atom document of its newest
pages, for it has no document of its own that says what is new.
"""

from __future__ import annotations

from dataclasses import dataclass

from hub.runtime.offloading import run_in_thread
from protocols.model import Entry, Feed
from protocols.quick import changed
from protocols.topic_pages import TopicFormat, TopicPage, render_topic_page
from storage.interface import Storage
from storage.packing import unpack
from storage.records import DocumentWrite, FetchCommit, FetchTarget
from storage.wanted import DOCUMENT_KINDS

MOST_ENTRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteDocuments:
    storage: Storage
    hub_url: str

    async def add(self, target: FetchTarget, commit: FetchCommit) -> FetchCommit:
        """The commit with the document as it is once this is committed, if it has
        news. Raises `StorageError`."""
        if not any(record.kind in DOCUMENT_KINDS for record in commit.records):
            return commit
        feed_id = target.feed.id
        head = None
        if commit.head is None:
            head = await self.storage.log.feed_head(feed_id)
        stored = await self.storage.entries.newest([feed_id], limit=MOST_ENTRIES)
        written = {each.key for each in commit.entries}
        written |= {each.key for each in commit.deletions}
        packed = [each.body for each in stored if each.key not in written]
        document = await run_in_thread(
            lambda: self._render(target, commit, head, packed)
        )
        body = DocumentWrite(content_type=TopicFormat.ATOM.media_type, body=document)
        return changed(commit, body=body)

    def _render(
        self,
        target: FetchTarget,
        commit: FetchCommit,
        head: bytes | None,
        packed: list[bytes],
    ) -> bytes:
        """Entries that the commit writes come first; ``head`` and ``packed`` are what
        is stored."""
        entries = commit.entries[:MOST_ENTRIES]
        further = packed[: MOST_ENTRIES - len(entries)]
        entries += tuple(unpack(body, Entry) for body in further)
        page = TopicPage(
            url=target.feed.url,
            hub=self.hub_url,
            source=target.feed.url,
            feed=commit.head or (unpack(head, Feed) if head else Feed()),
            entries=entries,
            dates=(commit.at,) * len(entries),
            undated=commit.at,
        )
        return render_topic_page(page, TopicFormat.ATOM)
