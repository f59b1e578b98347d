"""What a hub asks of a large database reads no table from end to end, and sorts no more
than a page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Final

from storage.postgres import open_database
from storage.records import WorkKind
from tests.conformance import (
    test_audit,
    test_bulk_plans,
    test_claims,
    test_dead_letters,
    test_event_store,
    test_failed_attempts,
    test_feed_statistics,
    test_feeds,
    test_list_watches,
    test_listings,
    test_log,
    test_membership,
    test_operations,
    test_pages,
    test_pauses,
    test_pushes,
    test_replays,
    test_retries,
    test_search,
    test_selections,
    test_series,
    test_sites,
    test_stored_runs,
    test_subscriptions,
    test_tracking,
    test_undelivered,
)
from tests.support.explained_queries import (
    STATISTICS,
    ExplainedNode,
    ExplainingServer,
    explaining_server,
)
from tests.support.storage_scene import Scene

CASES: Final[tuple[Callable[..., Awaitable[None]], ...]] = (
    test_audit.test_a_filter_finds_what_it_names,
    test_audit.test_what_is_too_old_is_forgotten,
    test_bulk_plans.test_of_the_plans_that_are_over_the_last_are_kept,
    test_claims.test_no_two_verifications_with_one_key_are_held,
    *(
        partial(
            test_claims.test_what_is_stored_is_no_longer_due_to_who_listed_it_before,
            kind=kind,
        )
        for kind in WorkKind
    ),
    test_dead_letters.test_a_retried_range_that_fails_is_buried_without_what_was_delivered_since,
    test_event_store.test_a_condition_is_told_when_it_begins_and_when_it_is_over,
    test_event_store.test_of_subscriptions_to_events_there_are_no_events,
    test_failed_attempts.test_failures_of_all_subscriptions_are_found_by_what_is_known_of_them,
    test_feed_statistics.test_a_purged_feed_leaves_neither_statistics_nor_links,
    test_feeds.test_a_feed_at_another_url_is_the_same_feed,
    test_feeds.test_a_purged_feed_takes_all_that_is_its_own_and_nothing_else,
    test_feeds.test_as_anybody_gets_it_a_feed_with_credentials_is_another,
    test_feeds.test_feeds_that_are_not_overdue_or_were_never_fetched_stay,
    test_feeds.test_hosts_that_want_no_requests_are_known_until_they_do,
    test_list_watches.test_a_list_that_is_no_longer_watched_keeps_nothing,
    test_list_watches.test_what_came_of_it_is_kept,
    test_listings.test_parts_are_found_in_either_case,
    test_listings.test_totals_follow_what_is_subscribed_changed_and_ended,
    test_log.test_a_commit_applies_all_that_a_fetch_found,
    test_membership.test_who_leaves_is_no_member_and_holds_nothing,
    test_operations.test_a_clock_that_goes_back_takes_with_it_what_waits,
    test_operations.test_its_bytes_are_told_by_purpose,
    test_operations.test_samples_of_the_disk_are_kept_for_a_while,
    test_pages.test_an_entry_of_the_best_owner_is_shown_by_its_own_section_alone,
    test_pauses.test_how_it_is_says_since_when_it_is_paused_and_what_it_is_after,
    test_pauses.test_nothing_is_tried_by_hand_while_it_is_paused,
    test_pauses.test_what_the_log_cannot_keep_for_it_becomes_a_dead_letter,
    test_pushes.test_a_feed_that_offers_nothing_any_more_is_forgotten_with_its_hub,
    test_pushes.test_a_hint_stays_until_a_later_fetch_has_heeded_it,
    test_pushes.test_one_that_is_confirmed_lasts_as_long_as_its_lease,
    test_replays.test_an_open_retry_is_set_back_and_never_forward,
    test_retries.test_old_attempts_are_trimmed_both_kinds,
    test_search.test_an_index_that_is_no_longer_kept_is_empty_and_goes_in_steps,
    test_selections.test_feeds_of_one_moment_are_paged_by_id,
    test_series.test_fine_samples_are_kept_apart,
    test_sites.test_pages_are_listed_anew_by_their_keys_and_found_where_they_are_not,
    test_stored_runs.test_runs_are_kept_until_they_are_removed_or_too_old,
    test_subscriptions.test_one_that_is_still_to_be_told_or_has_begun_anew_is_not_purged,
    test_subscriptions.test_pages_go_by_id_and_can_be_narrowed,
    test_subscriptions.test_whoever_watches_is_told_of_endings_however_they_came,
    test_tracking.test_a_query_is_a_feed_that_is_never_due_and_not_listed,
    test_tracking.test_what_a_query_found_is_shown_no_more_to_who_may_not_read_it_now,
    test_tracking.test_who_watches_is_told_of_queries_that_come_go_and_return,
    test_undelivered.test_a_try_that_is_under_way_changes_nothing_of_what_was_discarded,
)
"""They have a hub ask nine tenths of all that the conformance tests do."""
PAGE: Final = 2_000
"""Rows."""
LARGE: Final = {name for name, found in STATISTICS.items() if found["rows"] > 100_000}
"""Tables that grow with feeds and subscriptions. What is under way is little."""
WHOLE_TABLES: Final = (
    # The database is opened, or its clock went back.
    r"UPDATE \w+ SET \w+ = (\d+|greatest\(\$1, \w+ - \$2\)) WHERE \w+ > (\d+|\$1)",
    r"SELECT id, polling, created_at, next_fetch FROM stored_feeds",
    r"SELECT feed_id, record FROM pushes",
    r"CREATE TEMP TABLE overdue",
    # A hub joins.
    r"-- Make everything that is leased due at once",
    # Health counts retries and dead letters.
    r"SELECT \(SELECT coalesce\(sum\(total\), 0\)::bigint FROM feed_counts",
)
"""Statements that may read all of a table, since they come seldom."""
SORTED: Final = (
    # Of a few records, as many as are trimmed at once.
    r"SELECT DISTINCT coalesce\(source_id, feed_id\) AS feed FROM records",
    # Of what is under way.
    r"ARRAY\(SELECT id FROM chunks WHERE due <= lease_now",
    # Of requests to the open hub that are pending, as many as are let in.
    r"WITH turns AS \( SELECT id, due, row_number\(\) OVER",
    # Of the places that a few documents name.
    r"INSERT INTO feed_links",
)
"""Statements that may sort more than a page, as the planner takes it."""


async def carry_out(
    case: Callable[..., Awaitable[None]], server: ExplainingServer, key: Path
) -> None:
    with server.database() as location:
        storage = await open_database(location, key)
        given: dict[str, Any] = {"storage": storage, "scene": Scene(storage)}
        try:
            names = given.keys() & signature(case).parameters.keys()
            await case(**{name: given[name] for name in names})
        finally:
            await storage.close()


def is_any_of(patterns: tuple[str, ...], node: ExplainedNode) -> bool:
    return any(re.match(each, node.query) for each in patterns)


def reads_whole_table(node: ExplainedNode) -> bool:
    """One by one, or by an index without a condition, for all of its rows."""
    if re.sub(r"_\d+$", "_0", node.table) not in LARGE:
        return False
    is_by_index = node.kind in ("Index Scan", "Index Only Scan")
    return node.kind == "Seq Scan" or (
        is_by_index
        and node.rows > PAGE
        and not node.has_condition
        and "Limit" not in node.above
    )


def complaints(server: ExplainingServer) -> Iterator[str]:
    for node in server.nodes():
        if reads_whole_table(node) and not is_any_of(WHOLE_TABLES, node):
            yield f"{node.table} is read from end to end ({node.kind}): {node.query}"
        if node.kind == "Sort" and node.taken > PAGE and not is_any_of(SORTED, node):
            yield f"{node.taken} rows are sorted: {node.query}"


def test_no_statement_reads_a_large_table_or_sorts_more_than_a_page(
    tmp_path: Path,
) -> None:
    with explaining_server(tmp_path) as server:
        for number, case in enumerate(CASES):
            asyncio.run(carry_out(case, server, tmp_path / f"key{number}"))
        queries = {node.query for node in server.nodes()}
        found = sorted(set(complaints(server)))

    assert not found, "\n".join(found)
    assert len(queries) > 600
