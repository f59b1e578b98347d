"""RSS 1.0 with Dublin Core, as libraries, archives and older sites publish it."""

from __future__ import annotations

from random import Random

from scripts.benchmarks.documents import prose
from scripts.benchmarks.documents.facts import Habits, Item
from scripts.benchmarks.documents.markup import iso_date, markup, tag


def begin(random: Random, habits: Habits, kind: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF'
        '\n xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        '\n xmlns="http://purl.org/rss/1.0/"'
        '\n xmlns:dc="http://purl.org/dc/elements/1.1/"'
        '\n xmlns:content="http://purl.org/rss/1.0/modules/content/">\n'
        f'<channel rdf:about="{habits.site}/">\n{tag("title", prose.title(random))}'
        f"{tag('link', habits.site)}{tag('description', prose.sentence(random))}"
        f"{tag('dc:language', 'en')}<items><rdf:Seq/></items>\n</channel>\n"
    )


def end() -> str:
    return "</rdf:RDF>\n"


def item(random: Random, habits: Habits, kind: str, entry: Item) -> str:
    text = prose.html(random, random.randint(300, 4_000), root=habits.root)
    subjects = "".join(tag("dc:subject", term) for term in entry.terms)
    about = f' rdf:about="{entry.id}"' if entry.id else ""
    return (
        f"<item{about}>\n{tag('title', entry.title)}{tag('link', entry.link)}"
        f"{tag('description', prose.sentence(random))}"
        f"{markup('content:encoded', text, habits)}"
        f"{tag('dc:creator', entry.author)}{subjects}"
        f"{tag('dc:date', iso_date(entry.at, habits))}</item>\n"
    )
