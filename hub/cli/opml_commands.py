"""``fanfare opml``: lists of feeds, as other programs read and write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import click

from hub.cli import VerbGroup, examples, say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.import_progress import import_feeds
from hub.cli.progress import waiting
from hub.cli.wording import Failure, json_option, printable, say_json

if TYPE_CHECKING:
    from protocols.opml import FeedList


@click.group(cls=VerbGroup)
def opml() -> None:
    """Import, discover and export lists of feeds in OPML."""


@opml.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.  [default: standard output]",
)
@json_option("Print one JSON object with the feeds and the file written.")
@speaks_to_hub
def export(hub: Hub, output: Path | None, as_json: bool) -> None:
    """Write the public feeds as OPML 2.0, like /myPublicFeeds.opml.

    Categories become folders.
    """
    document = hub.read("/myPublicFeeds.opml")
    if output is not None:
        _write(output, document)
    if as_json:
        feeds = _read_outlines(document, "the hub's list").feeds
        file = None if output is None else str(output)
        say_json({"file": file, "feeds": [asdict(each) for each in feeds]})
    elif output is None:
        say(document, nl=False)
    else:
        say(f"wrote {output}")


def _write(path: Path, document: bytes) -> None:
    try:
        path.write_bytes(document)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error


MY_PUBLIC_FEEDS = "/myPublicFeeds.opml"


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
@click.option(
    "--category",
    "--section",
    "category",
    default="",
    help="The category of feeds outside folders.",
)
@click.option(
    "--private",
    is_flag=True,
    help="Make the feeds private: they appear in no public list or page.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be added.")
@json_option("Print one JSON object with the outcome of each feed and list.")
@speaks_to_hub
def import_list(
    hub: Hub, source: str, category: str, private: bool, dry_run: bool, as_json: bool
) -> None:
    """Add all feeds of a list and of the lists it includes; folders become categories.

    Prints a line for each feed, and progress on standard error. Feeds that exist are
    not changed, so a repetition continues where it stopped.
    """
    listing = _read(hub, source)
    if not listing["feeds"]:
        _print_unread_lists(listing)
        raise Failure("the list has no feeds")

    feeds = [_as_asked(each, category) for each in listing["feeds"]]
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
        section = f"  [{printable(feed['section'])}]" if feed["section"] else ""
        say(f"{printable(feed['url'])}{section}")
        facts = dict.fromkeys((feed["title"], feed["description"]))
        about = [printable(each) for each in facts if each and each != feed["url"]]
        if about:
            say(f"  {': '.join(about)}")


def _read(hub: Hub, source: str) -> Document:
    if source.lower().startswith(("http://", "https://")):
        return _read_lists(hub, {"urls": [source]})
    return _read_file(hub, source)


def _read_lists(hub: Hub, wanted: Document) -> Document:
    """All parts of what the hub reads."""
    with waiting("reading lists"):
        listing = part = hub.post("/api/lists", wanted)
        while part["next"] is not None:
            part = hub.post("/api/lists", {**wanted, "skip": part["next"]})
            listing["feeds"] += part["feeds"]
    return listing


def _read_outlines(body: bytes, name: str) -> FeedList:
    """A list without those it includes. Raises `Failure`."""
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
    feeds = [asdict(each) for each in walk.feeds]
    listing: Document = {"feeds": feeds, "lists": [], "notes": walk.notes}
    included = list(dict.fromkeys(each.url for each in found.inclusions))
    if included:
        wanted = {"urls": included[:MOST_LISTS], "depth": 1}
        _extend(listing, _read_lists(hub, wanted))
    return listing


def _extend(listing: Document, more: Document) -> None:
    """Add the feeds that are not there yet. The first mention of a URL counts; other
    spellings are left to the hub."""
    known = {feed["url"] for feed in listing["feeds"]}
    listing["feeds"] += [each for each in more["feeds"] if each["url"] not in known]
    listing["lists"] += more["lists"]
    listing["notes"] += more["notes"]


def _as_asked(feed: Document, category: str) -> Document:
    """The feeds of a list of bare URLs, with each URL in the place of the name."""
    title = "" if feed["title"] == feed["url"] else feed["title"]
    return {**feed, "title": title, "section": feed["section"] or category}


def _as_reported(feed: Document, imported: Document) -> Document:
    """What became of a feed; ``id`` None: it is not there."""
    return {
        "id": (imported["feed"] or {}).get("id"),
        "url": feed["url"],
        "section": feed["section"],
        "outcome": imported["outcome"],
        "reason": imported["reason"],
    }


def _print_fate(feed: Document, fate: ImportFate, reason: str) -> None:
    """Print the line about one feed."""
    because = f": {printable(reason)}" if reason else ""
    section = f"  [{printable(feed['section'])}]" if feed["section"] else ""
    say(f"{fate}  {printable(feed['url'])}{section}{because}")


def _unread_lists(listing: Document) -> Sequence[Document]:
    return [each for each in listing["lists"] if each["error"]]


def _print_unread_lists(listing: Document) -> None:
    for each in _unread_lists(listing):
        url, error = printable(each["url"]), printable(each["error"])
        say(f"not read  {url}: {error}", err=True)
    for note in listing["notes"]:
        say(f"note  {printable(note)}", err=True)
