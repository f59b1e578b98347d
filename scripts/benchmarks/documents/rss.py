"""RSS 2.0 as blogs, newspapers, podcasts and site generators publish it."""

from __future__ import annotations

from html import escape
from random import Random
from typing import Final

from scripts.benchmarks.documents import prose
from scripts.benchmarks.documents.facts import Habits, Item
from scripts.benchmarks.documents.markup import mail_date, markup, tag

_NAMESPACES: Final = {
    "atom": "http://www.w3.org/2005/Atom",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "georss": "http://www.georss.org/georss",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
}
_USED: Final = {
    "blog": ("content", "wfw", "dc", "atom", "sy", "slash", "georss"),
    "news": ("media", "dc", "atom", "sy"),
    "podcast": ("itunes", "content", "atom", "podcast", "sy"),
    "site": ("atom", "sy"),
}


def begin(random: Random, habits: Habits, kind: str) -> str:
    declared = "".join(f'\n\txmlns:{p}="{_NAMESPACES[p]}"' for p in _USED[kind])
    base = f' xml:base="{habits.site}/"' if habits.has_base else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"{base}{declared}>\n'
        f"<channel>\n{tag('title', prose.title(random))}"
        f"{tag('link', habits.site)}{tag('description', prose.sentence(random))}"
        f"{_links(habits)}{_hints(habits)}"
        f"{tag('language', 'en-US')}{tag('generator', 'https://blog.example/?v=6.5')}"
        f"{_show(random, habits) if kind == 'podcast' else ''}"
    )


def end() -> str:
    return "</channel>\n</rss>\n"


def _links(habits: Habits) -> str:
    written = []
    if habits.has_self:
        written.append(
            f'\t<atom:link href="{habits.site}/feed/" rel="self"'
            ' type="application/rss+xml" />\n'
        )
    if habits.has_hub:
        written.append('\t<atom:link rel="hub" href="https://hub.example/"/>\n')
    if habits.has_cloud:
        written.append(
            '\t<cloud domain="site.example" port="80" path="/?rsscloud=notify"'
            ' registerProcedure="" protocol="http-post" />\n'
        )
    return "".join(written)


def _hints(habits: Habits) -> str:
    period = "\t<sy:updatePeriod>hourly</sy:updatePeriod>\n" * habits.has_period
    frequency = "\t<sy:updateFrequency>1</sy:updateFrequency>\n" * habits.has_period
    skipped = "".join(f"<hour>{hour}</hour>" for hour in range(6))
    skip = f"\t<skipHours>{skipped}</skipHours>\n" * habits.has_skip_hours
    return f"{tag('ttl', str(habits.ttl or ''))}{period}{frequency}{skip}"


def _show(random: Random, habits: Habits) -> str:
    return (
        f"{tag('itunes:author', prose.name(random))}"
        f'\t<itunes:image href="{habits.site}/cover.jpg"/>\n'
        '\t<itunes:category text="Technology"><itunes:category text="News"/>'
        "</itunes:category>\n\t<itunes:explicit>false</itunes:explicit>\n"
    )


def item(random: Random, habits: Habits, kind: str, entry: Item) -> str:
    permalink = f'isPermaLink="{str(habits.has_permalinks).lower()}"'
    return (
        f"\t<item>\n{tag('title', entry.title)}{tag('link', entry.link)}"
        f"{tag('pubDate', mail_date(entry.at, habits))}"
        f"{tag('guid', entry.id, permalink)}"
        f"{_BODIES[kind](random, habits, entry)}\t</item>\n"
    )


def _post(random: Random, habits: Habits, entry: Item) -> str:
    text = prose.html(random, random.randint(1_500, 11_000), root=habits.root)
    categories = "".join(
        f"\t\t<category><![CDATA[{term}]]></category>\n" for term in entry.terms
    )
    place = "\t\t<georss:point>52.52 13.405</georss:point>\n" * (entry.number % 40 == 9)
    return (
        f"\t\t<dc:creator><![CDATA[{entry.author}]]></dc:creator>\n{categories}"
        f"{markup('description', f'<p>{prose.sentence(random)} [&#8230;]</p>', habits)}"
        f"{markup('content:encoded', text, habits)}"
        f"{tag('comments', entry.link and entry.link + '#comments')}"
        f"{tag('wfw:commentRss', f'{habits.site}/feed/?p={entry.number}')}"
        f"{tag('slash:comments', str(random.randrange(40)))}{place}"
    )


def _article(random: Random, habits: Habits, entry: Item) -> str:
    picture = f"{habits.site}/images/{entry.number}"
    text = prose.html(random, random.choice((100, 100, 600, 2_500)), root=habits.root)
    return (
        f"{markup('description', text, habits)}"
        f"{tag('dc:creator', entry.author)}"
        f"{''.join(tag('category', term) for term in entry.terms)}"
        f'\t\t<media:content url="{picture}.jpg" medium="image" width="1200"'
        f' height="800">\n\t\t\t<media:credit>{prose.name(random)}</media:credit>\n'
        f"\t\t\t<media:description>{prose.sentence(random)}</media:description>\n"
        f'\t\t</media:content>\n\t\t<media:thumbnail url="{picture}-s.jpg" width="140"'
        ' height="84"/>\n'
    )


def _episode(random: Random, habits: Habits, entry: Item) -> str:
    notes = prose.html(random, random.randint(300, 4_000), root=habits.root)
    file = f"https://cdn.example/{entry.number}/audio.mp3"
    return (
        f"{markup('description', notes, habits)}"
        f'\t\t<enclosure url="{escape(file)}" length="{48_000_000 + entry.number}"'
        f' type="audio/mpeg"/>\n{tag("itunes:title", entry.title)}'
        f"{tag('itunes:author', entry.author)}"
        f"{tag('itunes:summary', prose.sentence(random))}"
        f"{tag('itunes:duration', f'00:{10 + entry.number % 50}:07')}"
        f'\t\t<itunes:image href="{habits.site}/{entry.number}.jpg"/>\n'
        f"{tag('itunes:episode', str(entry.number))}"
        "\t\t<itunes:explicit>no</itunes:explicit>\n"
        f'\t\t<podcast:transcript url="{file}.vtt" type="text/vtt"/>\n'
    )


def _page(random: Random, habits: Habits, entry: Item) -> str:
    text = prose.html(random, random.randint(200, 7_000), root=habits.root)
    return markup("description", text, habits)


_BODIES: Final = {
    "blog": _post,
    "news": _article,
    "podcast": _episode,
    "site": _page,
}
