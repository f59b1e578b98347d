"""Atom as blogs, video channels, code hosts and planets publish it."""

from __future__ import annotations

from random import Random
from typing import Final

from scripts.benchmarks.documents import prose
from scripts.benchmarks.documents.facts import Habits, Item
from scripts.benchmarks.documents.markup import iso_date, markup, tag

_DECLARED: Final = {
    "blog": ' xmlns:thr="http://purl.org/syndication/thread/1.0"',
    "releases": ' xmlns:media="http://search.yahoo.com/mrss/" xml:lang="en-US"',
    "videos": (
        ' xmlns:yt="http://www.youtube.com/xml/schemas/2015"'
        ' xmlns:media="http://search.yahoo.com/mrss/"'
    ),
    "xhtml": ' xml:lang="en"',
}
_HTML: Final = 'type="html"'
_ATOM: Final = "http://www.w3.org/2005/Atom"


def begin(random: Random, habits: Habits, kind: str) -> str:
    base = f' xml:base="{habits.site}/"' if habits.has_base else ""
    self_link = f'\t<link rel="self" href="{habits.site}/atom.xml"/>\n'
    hub_link = '\t<link rel="hub" href="https://hub.example/"/>\n'
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<feed xmlns="{_ATOM}"{_DECLARED[kind]}{base}>\n'
        f"{tag('title', prose.title(random))}{tag('subtitle', prose.sentence(random))}"
        f"{self_link * habits.has_self}{hub_link * habits.has_hub}"
        f'\t<link href="{habits.site}/"/>\n\t<updated>2026-05-01T12:00:00Z</updated>\n'
        f"{tag('id', habits.site + '/')}"
        '\t<generator uri="https://maker.example/" version="4.3">maker</generator>\n'
    )


def end() -> str:
    return "</feed>\n"


def item(random: Random, habits: Habits, kind: str, entry: Item) -> str:
    date = iso_date(entry.at, habits)
    published = tag("published", date) if entry.number % 3 else ""
    link = f'\t\t<link rel="alternate" type="text/html" href="{entry.link}"/>\n'
    categories = "".join(f'\t\t<category term="{t}"/>\n' for t in entry.terms)
    return (
        f"\t<entry>\n{tag('id', entry.id)}{published}{tag('updated', date)}"
        f"{tag('title', entry.title, _title_type(kind))}{link * bool(entry.link)}"
        f"\t\t<author>\n\t\t\t<name>{entry.author}</name>\n"
        f"\t\t\t<uri>{habits.site}/about/</uri>\n\t\t</author>\n"
        f"{categories.replace('&', '&amp;')}{_BODIES[kind](random, habits, entry)}"
        "\t</entry>\n"
    )


def _title_type(kind: str) -> str:
    return _HTML if kind == "blog" else ""


def _post(random: Random, habits: Habits, entry: Item) -> str:
    text = prose.html(random, random.randint(1_000, 9_000), root=habits.root)
    replies = f'\t\t<link rel="replies" type="text/html" href="{entry.link}#c"/>\n'
    return (
        f"{markup('content', text, habits, _HTML)}"
        f"{replies * bool(entry.link)}{tag('thr:total', str(random.randrange(9)))}"
    )


def _release(random: Random, habits: Habits, entry: Item) -> str:
    text = prose.html(random, random.randint(300, 4_000), root=habits.root)
    return (
        f'\t\t<media:thumbnail height="30" width="30" url="{habits.site}/a.png"/>\n'
        f"{markup('content', text, habits, _HTML)}"
    )


def _video(random: Random, habits: Habits, entry: Item) -> str:
    video = f"{habits.site}/v/{entry.number}"
    description = "\n".join(prose.sentence(random) for _ in range(7))
    return (
        f"{tag('yt:videoId', f'v{entry.number}')}\t\t<media:group>\n"
        f"{tag('media:title', entry.title)}"
        f'\t\t\t<media:content url="{video}" type="application/x-shockwave-flash"'
        ' width="640" height="390"/>\n'
        f'\t\t\t<media:thumbnail url="{video}.jpg" width="480" height="360"/>\n'
        f"{tag('media:description', description)}\t\t\t<media:community>\n"
        '\t\t\t\t<media:starRating count="91" average="5.00" min="1" max="5"/>\n'
        '\t\t\t\t<media:statistics views="1831"/>\n\t\t\t</media:community>\n'
        "\t\t</media:group>\n"
    )


def _inline(random: Random, habits: Habits, entry: Item) -> str:
    size = random.randint(500, 6_000)
    text = prose.html(random, size, root=habits.root, is_xhtml=True)
    return (
        f"{tag('summary', prose.sentence(random))}"
        '\t\t<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">'
        f"{text}</div></content>\n"
    )


_BODIES: Final = {
    "blog": _post,
    "releases": _release,
    "videos": _video,
    "xhtml": _inline,
}
