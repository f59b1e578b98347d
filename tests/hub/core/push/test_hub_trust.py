"""How rarely a feed is polled depends on how well it is pushed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.push.hub_trust import (
    GRACE,
    HINT_PAUSE,
    MOST_NEEDED,
    hint_time,
    is_trusted,
    is_useless,
)
from hub.core.schedule.poll_period import DAY, PollingRules
from protocols.model import Feed, FeedFormat, Link, ParsedFeed
from protocols.protocol_errors import EmptyDocument
from storage.records import (
    Credentials,
    FetchCommit,
    FetchTarget,
    Polling,
    PollReason,
    Push,
    PushCount,
    PushOffer,
    PushWay,
    RecordKind,
)
from tests.support.documents import a_document, entries_named
from tests.support.fetch_targets import START, a_feed, a_target, an_answer

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
RULES = PollingRules(push_url="https://us.example")
HEAD = Feed(
    id="feed:1",
    title="A feed",
    links=(
        Link(href="https://hub.example/", rel="hub"),
        Link(href="https://feed.example/feed", rel="self"),
    ),
)
OFFER = PushOffer(
    way=PushWay.WEBSUB,
    hub="https://hub.example/",
    topic="https://feed.example/feed",
    marks=("feed:1", "https://feed.example/feed"),
)


def document(*keys: str, head: Feed = HEAD) -> ParsedFeed:
    return structs.replace(a_document(*entries_named(*keys)), feed=head)


@dataclass
class Story:
    """A feed that is polled and pushed, its commits applied as storage would."""

    target: FetchTarget = field(default_factory=lambda: a_target(a_feed()))
    rules: PollingRules = RULES
    at: datetime = START
    until: datetime | None = START + timedelta(days=365)  # once there is an offer
    counted: list[PushCount] = field(default_factory=list)
    is_first: bool = True  # nothing waits that was pushed before

    @property
    def push(self) -> Push:
        assert self.target.push is not None
        return self.target.push

    @property
    def period(self) -> float:
        return self.target.feed.polling.period

    @property
    def is_trusted(self) -> bool:
        return is_trusted(self.target.push, self.at)

    def poll(
        self, *keys: str, after: timedelta = HOUR, head: Feed = HEAD
    ) -> FetchCommit:
        read = document(*keys, head=head)
        body = repr(read).encode()
        return self._decide(an_answer(200, body), ParseOutcome(feed=read), after)

    def poll_304(self, after: timedelta = HOUR) -> FetchCommit:
        return self._decide(an_answer(304), ParseOutcome(), after)

    def push_of(
        self, *keys: str, after: timedelta = MINUTE, head: Feed = HEAD
    ) -> FetchCommit:
        return self.bring(ParseOutcome(feed=document(*keys, head=head)), after)

    def bring(
        self,
        understood: ParseOutcome,
        after: timedelta = MINUTE,
        *,
        pushed: bool = True,
    ) -> FetchCommit:
        body = f"pushed {understood!r}".encode()
        fetched = structs.replace(
            an_answer(200, body), is_partial=True, is_pushed=pushed
        )
        return self._decide(fetched, understood, after)

    def hint(self) -> None:
        self.target = replace(self.target, push=replace(self.push, hinted_at=self.at))

    def _decide(
        self, fetched: Fetched, understood: ParseOutcome, after: timedelta
    ) -> FetchCommit:
        self.at += after
        commit = decide(
            Decision(
                target=self.target,
                fetched=structs.replace(
                    fetched,
                    at=self.at,
                    started=self.at,
                    heeds_until=self.at if self.is_first else None,
                ),
                understood=understood,
                rules=self.rules,
                jitter=0.0,
                reason=PollReason.PINGED,
            )
        )
        self._apply(commit)
        return commit

    def _apply(self, commit: FetchCommit) -> None:
        before = self.target
        feed = replace(
            before.feed,
            polling=commit.polling,
            next_fetch=commit.next_fetch,
            format=before.feed.format if commit.format is None else commit.format,
        )
        seen = before.seen if commit.seen is None else commit.seen
        self.target = replace(before, feed=feed, seen=seen)
        if commit.push is not None:
            push = commit.push.push
            heeded = commit.push.heeded_until
            if heeded is not None and push.hinted_at and push.hinted_at <= heeded:
                push = replace(push, hinted_at=None)
            until = self.until if push.offer else None
            self.target = replace(self.target, push=replace(push, until=until))
            self.counted += commit.push.counted


def a_story() -> Story:
    story = Story()
    story.poll("a")
    return story


def a_trusted_story() -> Story:
    story = a_story()
    story.poll_304()  # it is new no more
    story.push_of("b")
    story.push_of("c")
    assert story.is_trusted
    return story


def test_what_a_feed_offers_is_stored_with_the_fetch_that_showed_it() -> None:
    story = Story()
    commit = story.poll("a")
    assert commit.push is not None
    assert commit.push.is_turned
    assert commit.push.push.offer == OFFER
    assert story.poll("a", "b").push is not None  # a poll found it first
    assert story.poll_304().push is not None  # and nobody pushed it after that
    assert story.poll_304().push is None


def test_nothing_is_stored_where_hubs_of_others_are_not_wanted() -> None:
    story = Story(rules=PollingRules())
    assert story.poll("a").push is None
    assert story.poll_304().push is None


def test_a_feed_that_only_we_are_shown_is_not_pushed() -> None:
    credentials = Credentials(username="a", password="b")
    story = Story(target=replace(a_target(a_feed()), credentials=credentials))
    assert story.poll("a").push is None


def test_a_part_of_a_page_is_not_pushed() -> None:
    story = Story()
    part = structs.replace(document("a"), format=FeedFormat.PART)
    commit = story._decide(an_answer(200, b"a"), ParseOutcome(feed=part), HOUR)
    assert commit.push is None


def test_one_push_proves_nothing_yet() -> None:
    story = a_story()
    commit = story.push_of("b")
    assert [record.kind for record in commit.records] == [RecordKind.ENTRIES]
    assert not story.is_trusted
    assert story.counted == [PushCount.BROUGHT]


def test_pushed_news_puts_no_poll_off() -> None:
    story = a_trusted_story()
    planned = story.target.feed.next_fetch
    assert story.push_of("d").next_fetch == planned


def test_a_feed_that_is_pushed_is_polled_once_a_day() -> None:
    story = a_trusted_story()
    story.poll_304()
    assert story.period == DAY
    assert story.target.feed.next_fetch == story.at + timedelta(days=1)


def test_a_feed_that_is_rarely_polled_is_polled_twelve_times_as_rarely() -> None:
    story = a_trusted_story()
    story.rules = dataclasses.replace(RULES, max_period=30 * DAY, earned_floor=3 * DAY)
    story.poll_304()
    assert story.period == 30 * DAY


def test_what_the_operator_sets_is_the_most_all_the_same() -> None:
    story = a_trusted_story()
    story.rules = dataclasses.replace(RULES, max_period=7_200.0)
    story.poll_304()
    assert story.period == 7_200.0


def test_in_trouble_it_is_polled_like_any_other() -> None:
    story = a_trusted_story()
    story._decide(an_answer(500), ParseOutcome(), HOUR)
    assert story.period < DAY


def test_without_a_subscription_that_lasts_it_is_polled_like_any_other() -> None:
    story = a_trusted_story()
    story.target = replace(
        story.target, push=replace(story.push, until=story.at + HOUR)
    )
    story.poll_304()
    assert story.period < DAY


def test_what_polls_find_counts_only_while_somebody_should_have_pushed_it() -> None:
    story = Story(until=None)
    story.poll("a")
    assert story.poll("a", "b").push is None


def test_a_backup_poll_that_finds_news_makes_polls_normal_again() -> None:
    story = a_trusted_story()
    story.poll("a", "b", "c", "d")
    assert story.period < DAY
    assert story.counted[-1] is PushCount.MISSED
    assert story.push.record.missed == 1


def test_a_hub_that_was_believed_and_missed_something_is_asked_anew() -> None:
    story = a_trusted_story()
    commit = story.poll("a", "b", "c", "d")
    assert commit.push is not None
    assert commit.push.is_turned
    again = story.poll("a", "b", "c", "d", "e")
    assert again.push is not None
    assert not again.push.is_turned


def test_twice_as_much_proof_is_needed_then() -> None:
    story = a_trusted_story()
    story.poll("a", "b", "c", "d")
    story.poll_304(after=GRACE + MINUTE)
    assert (story.push.record.needed, story.push.record.proofs) == (4, 0)
    for key in "efg":
        story.push_of(key)
        assert not story.is_trusted
    story.push_of("h")
    assert story.is_trusted


def test_a_push_that_was_only_late_is_forgiven() -> None:
    story = a_trusted_story()
    story.poll("a", "b", "c", "d")
    assert not story.is_trusted
    story.push_of("d", after=GRACE)
    assert story.is_trusted
    assert story.push.record.late == 1
    assert story.counted[-1] is PushCount.LATE


def test_the_same_push_twice_changes_nothing_but_when() -> None:
    story = a_story()
    story.push_of("b")
    before = story.push
    commit = story.push_of("b")
    assert commit.records == ()
    assert story.push == replace(
        before, record=replace(before.record, pushed_at=story.at)
    )


def test_what_its_publisher_brings_says_nothing_of_the_hub() -> None:
    story = a_trusted_story()
    before = story.push
    understood = ParseOutcome(feed=document("d"))
    commit = story.bring(understood, pushed=False)
    assert [record.kind for record in commit.records] == [RecordKind.ENTRIES]
    assert story.push == before


def test_news_that_a_hint_led_to_was_pushed() -> None:
    story = a_story()
    story.hint()
    story.poll("a", "b")
    assert story.push.record.brought == 1
    assert story.push.hinted_at is None


def test_a_hint_without_news_is_heeded_too() -> None:
    story = a_story()
    story.hint()
    commit = story.poll_304()
    assert commit.push is not None
    assert story.push.hinted_at is None
    assert story.push.record.brought == 0


def test_a_hint_that_came_during_a_fetch_is_for_the_next_one() -> None:
    story = a_story()
    story.target = replace(
        story.target, push=replace(story.push, hinted_at=story.at + 2 * HOUR)
    )
    story.poll_304()
    assert story.push.hinted_at is not None


OTHER = Feed(id="feed:2", links=(Link(href="https://other.example/", rel="self"),))


def test_a_document_of_another_feed_is_not_told_but_the_feed_is_asked_soon() -> None:
    story = a_trusted_story()
    commit = story.push_of("x", head=OTHER, after=MINUTE)
    assert (commit.records, commit.entries) == ((), ())
    assert commit.next_fetch == story.at
    assert story.counted[-1] is PushCount.FOREIGN
    assert not story.is_trusted
    assert story.push.hinted_at == story.at
    story.push_of("y", head=OTHER)
    assert story.push.record.foreign == 2


def test_another_feed_of_the_same_site_is_another_feed() -> None:
    site = Link(href="https://feed.example/", rel="alternate")
    ours = structs.replace(HEAD, links=(*HEAD.links, site))
    story = Story()
    story.poll("a", head=ours)
    comments = Link(href="https://feed.example/comments", rel="self")
    story.push_of("x", head=Feed(id="feed:2", links=(comments, site)))
    assert story.push.record.foreign == 1
    story.push_of("b", head=Feed(links=(site,)))  # it names nothing else
    assert story.push.record.brought == 1


def test_a_push_heeds_nothing_while_one_before_it_is_not_stored() -> None:
    story = a_story()
    story.hint()
    story.is_first = False
    story.push_of("b")
    assert story.push.hinted_at is not None
    story.poll("b")
    assert story.push.hinted_at is None


def test_what_a_push_told_is_heeded_unless_it_was_of_no_use() -> None:
    story = a_story()
    story.hint()
    story.push_of("x", head=OTHER)
    assert story.push.hinted_at is not None
    story.push_of("b")
    assert story.push.hinted_at is None


def test_what_is_no_document_brings_about_a_fetch_too() -> None:
    story = a_trusted_story()
    failures = story.target.feed.polling.failures
    commit = story.bring(ParseOutcome(error=EmptyDocument()))
    assert commit.records == ()
    assert commit.next_fetch == story.at
    assert commit.polling.failures == failures


def test_nonsense_makes_no_storm_of_fetches() -> None:
    fetched = an_answer(200, at=START + timedelta(seconds=9))
    assert hint_time(fetched, Polling()) == fetched.at
    assert hint_time(fetched, Polling(last_fetch=START)) == START + HINT_PAUSE
    patience = START + HOUR
    assert hint_time(fetched, Polling(retry_after=patience)) == patience


def test_the_bytes_that_are_known_are_nothing_new() -> None:
    assert not is_useless(Push(offer=OFFER), ParseOutcome())
    assert is_useless(Push(offer=None), ParseOutcome())
    assert is_useless(None, ParseOutcome())


def test_a_site_is_not_pushed_into_a_feed() -> None:
    site = structs.replace(document("a"), format=FeedFormat.OPENFEEDER)
    assert is_useless(Push(offer=OFFER), ParseOutcome(feed=site))


def test_of_another_hub_nothing_is_known() -> None:
    story = a_trusted_story()
    moved = structs.replace(
        HEAD, links=(Link(href="https://new.example/", rel="hub"), HEAD.links[1])
    )
    commit = story.poll("a", "b", "c", head=moved)
    assert commit.push is not None
    assert commit.push.is_turned
    assert story.push.record.proofs == 0
    assert story.push.record.brought == 2
    assert not story.is_trusted
    commit = story.poll("a", "b", "c", head=structs.replace(HEAD, links=()))
    assert commit.push is not None
    assert commit.push.push.offer is None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["poll", "push", "late", "foreign", "304", "hint"]),
        st.integers(0, 30),
    ),
    max_size=30,
)


@given(STEPS)
def test_each_entry_is_told_once_however_it_comes_and_trust_is_earned(
    steps: list[tuple[str, int]],
) -> None:
    story, there, told = a_story(), ["a"], []
    for kind, minutes in steps:
        after = timedelta(minutes=minutes)
        if kind in ("poll", "push"):
            there.append(f"n{len(there)}")
        if kind == "poll":
            commit = story.poll(*there, after=after)
        elif kind == "push" or kind == "late":
            commit = story.push_of(there[-1], after=after)
        elif kind == "foreign":
            commit = story.push_of("x", head=OTHER, after=after)
        elif kind == "304":
            commit = story.poll_304(after=after)
        else:
            story.hint()
            continue
        told += [key for each in commit.records for key, _ in each.entries]
        record = story.push.record
        assert 0 <= record.proofs <= MOST_NEEDED
        assert 2 <= record.needed <= MOST_NEEDED
        if story.is_trusted:
            assert record.brought >= record.needed
    assert sorted(told) == sorted(set(there) - {"a"})
