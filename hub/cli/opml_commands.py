"""``fanfare opml``: lists of feeds, as other programs read and write them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urljoin

import click

from hub.cli import VerbGroup, examples, say, say_in_place
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.import_progress import import_feeds
from hub.cli.progress import CopyProgress, waiting
from hub.cli.renamed_options import renamed_option
from hub.cli.selection_options import feed_selection, selection
from hub.cli.wording import (
    Failure,
    age,
    json_option,
    moment,
    print_table,
    printable,
    say_json,
)

if TYPE_CHECKING:
    from protocols.opml import FeedList, ListedFeed


@click.group(cls=VerbGroup)
def opml() -> None:
    """Import, discover and export lists of feeds in OPML."""


@opml.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.  [default: standard output]",
)
@feed_selection
@click.option("--all", "every", is_flag=True, help="All feeds, private ones too.")
@json_option("Print one JSON object with the feeds and the file written.")
@speaks_to_hub
def export(
    hub: Hub, /, output: Path | None, every: bool, as_json: bool, **given: object
) -> None:
    """Write the public feeds as OPML 2.0, like /myPublicFeeds.opml.

    With a filter, or --all: the feeds that it finds, private ones too. Categories
    become folders.
    """
    wanted = selection(**given)
    asked = urlencode(
        {name: "true" if value is True else value for name, value in wanted.items()},
        doseq=True,
    )
    document = hub.read(
        f"/api/feeds.opml{'?' if asked else ''}{asked}"
        if wanted or every
        else MY_PUBLIC_FEEDS
    )
    if output is not None:
        _write(output, document)
    if as_json:
        feeds = _read_outlines(document, "the hub's list").feeds
        file = None if output is None else str(output)
        say_json({"file": file, "feeds": list(map(_as_listed, feeds))})
    elif output is None:
        say(document, nl=False)
    else:
        say(f"wrote {output}")


def _as_listed(feed: ListedFeed) -> Document:
    """Return a listed feed as the API gives it; ``section`` is its category, too."""
    return {**asdict(feed), "section": feed.category}


def _write(path: Path, document: bytes) -> None:
    try:
        path.write_bytes(document)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error


MY_PUBLIC_FEEDS = "/myPublicFeeds.opml"
ASK_SECONDS: Final = 0.5
"""Pause between two questions how far the hub is with a list."""


class ImportFate(StrEnum):
    """What became of one feed of a list."""

    ADDED = "added"
    WOULD_BE = "would be added"
    KNOWN = "already there"
    REFUSED = "not added"


_FATES = {
    "added": ImportFate.ADDED,
    "addable": ImportFate.WOULD_BE,
    "known": ImportFate.KNOWN,
    "refused": ImportFate.REFUSED,
}


@opml.command(
    name="import",
    epilog=examples(
        "fanfare opml import feeds.opml --dry-run",
        "fanfare opml import https://example.org/blogroll.opml --category blogs",
    ),
)
@click.argument("source", metavar="FILE|URL|-")
@renamed_option(
    "--category",
    former="--section",
    default="",
    help="The category of feeds outside folders.",
)
@click.option(
    "--private",
    is_flag=True,
    help="Make the feeds private: they appear in no public list or page.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be added.")
@click.option(
    "--watch",
    is_flag=True,
    help="Follow the list at URL: the hub reads it again every hour.",
)
@json_option("Print one JSON object with the outcome of each feed and list.")
@speaks_to_hub
def import_list(
    hub: Hub,
    source: str,
    category: str,
    private: bool,
    dry_run: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Add all feeds of a list and of the lists it includes; folders become categories.

    Prints a line for each feed, and progress on standard error. Feeds that exist are
    not changed, so a repetition continues where it stopped.

    With --watch the hub keeps in step with the list: feeds that appear in it are added,
    those that leave it are removed. Feeds that have subscribers, or were there before,
    only lose the category. `fanfare opml watches` shows the lists and their state.
    """
    if watch:
        if not _is_url(source) or dry_run:
            raise click.UsageError("--watch takes the URL of a list, and no --dry-run")
        _watch(hub, {"url": source, "category": category, "private": private}, as_json)
        return
    listing = _read(hub, source)
    if not listing["feeds"]:
        _print_unread_lists(listing)
        raise Failure("the list has no feeds")

    feeds = [_without_url_titles(each, category) for each in listing["feeds"]]
    terms = {"private": private, "dry_run": dry_run, "keeps_known": True}
    fates: Counter[ImportFate] = Counter()
    outcomes: list[Document] = []
    for feed, imported in zip(feeds, import_feeds(hub, feeds, terms), strict=True):
        fate = _FATES[imported["outcome"]]
        fates[fate] += 1
        if as_json:
            outcomes.append(_as_reported(feed, imported))
        else:
            _print_fate(feed, fate, imported["reason"])
    _print_unread_lists(listing)
    if as_json:
        lists, notes = listing["lists"], listing["notes"]
        say_json({"feeds": outcomes, "lists": lists, "notes": notes})
    else:
        told = [f"{fates[each]:,} {each}" for each in ImportFate if fates[each]]
        say(f"{', '.join(told)}, of {len(feeds):,} feeds")
    if fates[ImportFate.REFUSED] or _unread_lists(listing):
        raise Failure("some feeds or lists could not be imported")


def _watch(hub: Hub, wanted: Document, as_json: bool) -> None:
    """Have the hub watch a list, and wait until it has read it and made the changes."""
    found = hub.post("/api/watched-lists?wait=1", wanted)
    progress = CopyProgress(what="feeds", amount="{:,}".format)
    while (reading := found["reading"]) is not None:
        progress(reading["done"], reading["total"])
        time.sleep(ASK_SECONDS)
        found = hub.get(f"/api/watched-lists/{found['id']}")
    say_in_place("")
    if as_json:
        say_json(found)
    else:
        say(f"watched  {printable(found['url'])}: {_state_of(found)}")
        say(f"read again {moment(found['next_read'])}; `fanfare opml unwatch` ends it")
    if found["error"] or found["refused"]:
        raise Failure(found["error"] or f"{found['refused']:,} feeds were not added")


def _state_of(found: Document) -> str:
    """Return how a watched list is: ``12 feeds, 2 added``."""
    if found["failures"]:
        return "could not be read"
    counts = [f"{found['feeds']:,} feeds"]
    if found["changed_at"] and found["changed_at"] == found["last_read"]:
        counts.append(_last_change(found))
    if found["refused"]:
        counts.append(f"{found['refused']:,} not added")
    return ", ".join(counts)


def _last_change(found: Document) -> str:
    """Return what the last change did: ``2 added, 1 removed``; "" if there was none."""
    words = ("added", "removed", "kept")
    return ", ".join(f"{found[word]:,} {word}" for word in words if found[word])


@opml.command()
@json_option("Print one JSON array.")
@speaks_to_hub
def watches(hub: Hub, as_json: bool) -> None:
    """List the lists that the hub keeps in step with.

    When each was last read and what changed, when it is read next, and what is wrong
    with it.
    """
    found = list(hub.each("/api/watched-lists", "lists"))
    if as_json:
        say_json(found)
        return
    if not found:
        say("no list is watched; begin with `fanfare opml import --watch URL`")
        return
    print_table(
        (
            *("ID", "URL", "CATEGORY", "FEEDS", "READ", "LAST CHANGE", "CHANGED"),
            *("NEXT", "ERROR"),
        ),
        [
            (
                *(each["id"], each["url"], each["category"], f"{each['feeds']:,}"),
                *(_ago(each["last_read"]), _last_change(each)),
                *(_ago(each["changed_at"]), _next_reading(each), each["error"]),
            )
            for each in found
        ],
    )


def _ago(at: str | None) -> str:
    return f"{age(at)} ago" if at else "never"


def _next_reading(found: Document) -> str:
    """Return when a list is read next: ``in 12 min``."""
    when = moment(found["next_read"]).rpartition("(")[2]
    return "now" if found["reading"] is not None else when.rstrip(")")


@opml.command()
@click.argument("watched", metavar="URL|ID")
@json_option()
@speaks_to_hub
def unwatch(hub: Hub, watched: str, as_json: bool) -> None:
    """Watch a list no more; its feeds stay."""
    for each in hub.each("/api/watched-lists", "lists"):
        if watched in (each["url"], str(each["id"])):
            found = hub.delete(f"/api/watched-lists/{each['id']}")
            break
    else:
        raise Failure(
            f"{printable(watched)} is not watched; `fanfare opml watches` lists what is"
        )
    if as_json:
        say_json(found)
    else:
        say(f"no longer watched  {printable(found['url'])}; its feeds stay")


@opml.command()
@click.argument("site", metavar="SITE")
@json_option()
@speaks_to_hub
def discover(hub: Hub, site: str, as_json: bool) -> None:
    """List the feeds that a site publishes at /myPublicFeeds.opml. Adds nothing."""
    root = site if "://" in site else f"https://{site}"
    listing = _read(hub, urljoin(root, MY_PUBLIC_FEEDS))
    if as_json:
        say_json({name: listing[name] for name in ("feeds", "lists", "notes")})
    else:
        _print_feeds(listing)
    _print_unread_lists(listing)
    if not listing["feeds"]:
        raise Failure(f"{printable(site)} publishes no list of feeds")


def _print_feeds(listing: Document) -> None:
    for feed in listing["feeds"]:
        say(f"{printable(feed['url'])}{_category_of(feed)}")
        facts = dict.fromkeys((feed["title"], feed["description"]))
        about = [printable(each) for each in facts if each and each != feed["url"]]
        if about:
            say(f"  {': '.join(about)}")


def _category_of(feed: Document) -> str:
    """Return a feed's category, as it is printed after the URL; "" without one."""
    return f"  [{printable(feed['category'])}]" if feed["category"] else ""


def _read(hub: Hub, source: str) -> Document:
    if _is_url(source):
        return _read_lists(hub, {"urls": [source]})
    return _read_file(hub, source)


def _is_url(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def _read_lists(hub: Hub, wanted: Document) -> Document:
    """Have the hub read lists; return all parts of its answer as one."""
    with waiting("reading lists"):
        listing = part = hub.post("/api/lists", wanted)
        while part["next"] is not None:
            part = hub.post("/api/lists", {**wanted, "skip": part["next"]})
            listing["feeds"] += part["feeds"]
    return listing


def _read_outlines(body: bytes, name: str) -> FeedList:
    """Return the list in a document, without those it includes. Raises `Failure`."""
    from protocols.opml import read_outlines
    from protocols.protocol_errors import FeedError

    try:
        return read_outlines(body, "")
    except FeedError as error:
        raise Failure(f"{name}: {error}") from error


def _read_file(hub: Hub, name: str) -> Document:
    """Read the file here; the hub fetches the lists that it includes."""
    from protocols.opml import MOST_BYTES, MOST_LISTS, OutlineWalk

    try:
        with click.open_file(name, "rb") as file:
            body = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"cannot read {name}: {reason}") from error
    if len(body) > MOST_BYTES:
        raise Failure(f"{name} has more than {MOST_BYTES} bytes")
    found = _read_outlines(body, name)
    walk = OutlineWalk()
    walk.begin_with(found)
    feeds = list(map(_as_listed, walk.feeds))
    listing: Document = {"feeds": feeds, "lists": [], "notes": walk.notes}
    included = list(dict.fromkeys(each.url for each in found.inclusions))
    if included:
        wanted = {"urls": included[:MOST_LISTS], "depth": 1}
        _extend(listing, _read_lists(hub, wanted))
    return listing


def _extend(listing: Document, more: Document) -> None:
    """Add feeds, lists and notes of ``more``, except feeds whose URL is there already.

    Different spellings of one URL are left to the hub.
    """
    known = {feed["url"] for feed in listing["feeds"]}
    listing["feeds"] += [each for each in more["feeds"] if each["url"] not in known]
    listing["lists"] += more["lists"]
    listing["notes"] += more["notes"]


def _without_url_titles(feed: Document, category: str) -> Document:
    """Return a feed as it is imported, in ``category`` if it names none.

    In lists of bare URLs, a URL is in the place of the title; such a title becomes "".
    """
    title = "" if feed["title"] == feed["url"] else feed["title"]
    return {
        "url": feed["url"],
        "title": title,
        "description": feed["description"],
        "category": feed["category"] or category,
    }


def _as_reported(feed: Document, imported: Document) -> Document:
    """Return what became of a feed; ``id`` None: the hub does not have it."""
    return {
        "id": (imported["feed"] or {}).get("id"),
        "url": feed["url"],
        "category": feed["category"],
        "section": feed["category"],
        "outcome": imported["outcome"],
        "reason": imported["reason"],
    }


def _print_fate(feed: Document, fate: ImportFate, reason: str) -> None:
    """Print a line about one feed."""
    because = f": {printable(reason)}" if reason else ""
    category = (
        "" if fate is ImportFate.KNOWN else _category_of(feed)
    )  # a known feed keeps its own
    say(f"{fate}  {printable(feed['url'])}{category}{because}")


def _unread_lists(listing: Document) -> Sequence[Document]:
    return [each for each in listing["lists"] if each["error"]]


def _print_unread_lists(listing: Document) -> None:
    for each in _unread_lists(listing):
        url, error = printable(each["url"]), printable(each["error"])
        say(f"not read  {url}: {error}", err=True)
    for note in listing["notes"]:
        say(f"note  {printable(note)}", err=True)
