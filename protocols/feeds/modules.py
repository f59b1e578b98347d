"""The extension modules that RSS, RDF and Atom have in common.

Dublin Core (``dc:``, ``dcterms:``), Apple's podcast elements, Media RSS, places (GeoRSS
and the W3C's basic vocabulary), and when to fetch the feed again (``ttl``,
``skipHours``, ``sy:*``). A table maps the Clark name of a child element to the handler
that reads it into the draft; elements that are in no table are kept by `extensions`.

Apple's elements, those of Media RSS and those of schedules are kept as extensions as
well: apps look for them there, and sizes, ratings and the like have no field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from protocols.feeds.constructs import make_link, read_mailbox
from protocols.feeds.drafts import (
    Draft,
    EntryDraft,
    HeadDraft,
    read_date,
    read_language,
)
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import Attributes, Inside, keep_element, parts_of
from protocols.feeds.namespaces import qualified, usual_name
from protocols.feeds.scope import Scope
from protocols.model import Author, Geo, Text
from protocols.text import text_of_html, text_of_title, whole_number


def _creator(draft: Draft, element: Element, scope: Scope) -> None:
    creator = read_mailbox(text_of(element))  # many write it as a mailbox, as in RSS
    if creator.name or creator.email:
        draft.append("creators", creator)


def _contributor(draft: Draft, element: Element, scope: Scope) -> None:
    name = text_of_html(text_of(element))
    if name:
        draft.append("contributors", Author(name=name))


def _date(draft: Draft, element: Element, scope: Scope) -> None:
    """Read ``dc:date``: when an entry was published, or when a feed was last
    changed.
    """
    if isinstance(draft, EntryDraft):
        _issued(draft, element, scope)
    else:
        _modified(draft, element, scope)


def _created(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("published", read_date(draft, element), element, rank=1)


def _issued(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("published", read_date(draft, element), element)


def _modified(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("updated", read_date(draft, element), element)


def _subject(draft: Draft, element: Element, scope: Scope) -> None:
    draft.add_category(text_of_title(text_of(element)))


def _title(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("title", text_of_title(text_of(element)), element)


def _description(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer_summary(Text(value=text_of(element)), element, rank=1)


def _rights(draft: Draft, element: Element, scope: Scope) -> None:
    draft.offer("rights", text_of_html(text_of(element)), element)


_ELEMENTS: Final = {
    "author": _creator,  # not part of Dublin Core, but used
    "contributor": _contributor,
    "creator": _creator,
    "date": _date,
    "description": _description,
    "language": read_language,
    "rights": _rights,
    "subject": _subject,
    "title": _title,
}
_DATES: Final = {"created": _created, "issued": _issued, "modified": _modified}
# All fifteen elements of Dublin Core are terms, too: "dcterms:title" is "dc:title".
DUBLIN_CORE: Final = {
    **qualified("dc", _ELEMENTS),
    **qualified("dcterms", _ELEMENTS | _DATES),
}


ITUNES_SCHEME: Final = "http://www.itunes.com/"
"""The scheme of Apple's categories, and of keywords for its directory."""


def _author(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.spare_author = text_of_html(text_of(element))


def _image(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    image = scope.within(element).resolve(element.get("href") or text_of(element))
    if not image:
        return
    if isinstance(draft, HeadDraft):
        draft.offer("logo", image)
    else:
        draft.add_link(make_link(image, "image"))


def _summary(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.offer_summary(Text(value=text_of(element)))


def _subtitle(draft: Draft, element: Element, scope: Scope) -> None:
    """A subtitle is shorter than a summary, so it is used only without one."""
    keep_element(draft.extensions, element)
    draft.offer_summary(Text(value=text_of(element)), rank=2)


def _itunes_title(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.offer("title", text_of_title(text_of(element)))


def _itunes_category(draft: Draft, element: Element, scope: Scope) -> None:
    """Read Apple's categories; a subcategory is inside its category."""
    keep_element(draft.extensions, element)
    for each in element.iter():
        if each.tag == element.tag:
            term = text_of_title(each.get("text") or "")
            draft.add_category(term, ITUNES_SCHEME)


def _itunes_keywords(draft: Draft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    for keyword in text_of(element).split(","):
        draft.add_category(text_of_title(keyword), ITUNES_SCHEME)


ITUNES: Final = qualified(
    "itunes",
    {
        "author": _author,
        "category": _itunes_category,
        "image": _image,
        "keywords": _itunes_keywords,
        "subtitle": _subtitle,
        "summary": _summary,
        "title": _itunes_title,
    },
)


KeepingHandler: TypeAlias = Callable[[Draft, Element, Scope], None]
Reader: TypeAlias = Callable[[Draft, Element, Attributes, Scope], None]
MEDIA_SCHEME: Final = "http://search.yahoo.com/mrss/category_schema"
"""The default scheme (Media RSS 1.5.1, media:category)."""


def _kept(read: Reader, readers: Mapping[str, Reader] | None = None) -> KeepingHandler:
    """A handler that reads an element and its parts, and keeps it as an extension."""

    def read_and_keep(draft: Draft, element: Element, scope: Scope) -> None:
        said = dict(element.items())
        scope = scope.within(element)
        read(draft, element, said, scope)
        inside = parts_of(element) if len(element) else []
        if readers:
            _read_parts(draft, inside, scope, readers)
        keep_element(draft.extensions, element, said, inside)

    return read_and_keep


def _group(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    """A group has no content of its own, only parts."""


def _read_parts(
    draft: Draft, inside: Inside, scope: Scope, readers: Mapping[str, Reader]
) -> None:
    for child, said in inside:
        read = readers.get(child.tag) or readers.get(usual_name(child.tag))
        if read:
            read(draft, child, said, scope.within(child))


def _content(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    """Read a file: an image gets the relation ``image``, any other file
    ``enclosure``.
    """
    url = scope.resolve(said.get("url"))
    if url:
        type = said.get("type", "").strip()
        is_image = said.get("medium") == "image" or type.startswith("image/")
        rel = "image" if is_image else "enclosure"
        draft.add_link(make_link(url, rel, type, length=said.get("fileSize")))


def _content_in_group(
    draft: Draft, element: Element, said: Attributes, scope: Scope
) -> None:
    _content(draft, element, said, scope)
    if len(element):
        _read_parts(draft, parts_of(element), scope, _DETAILS)


def _thumbnail(draft: Draft, element: Element, said: Attributes, scope: Scope) -> None:
    url = scope.resolve(said.get("url") or text_of(element))
    if url:
        draft.add_link(make_link(url, "thumbnail"))


def _media_title(
    draft: Draft, element: Element, said: Attributes, scope: Scope
) -> None:
    draft.offer("title", text_of_title(text_of(element)), rank=1)


def _media_description(
    draft: Draft, element: Element, said: Attributes, scope: Scope
) -> None:
    """Read a description. Its ``type`` is plain by default (Media RSS 1.5.1)."""
    type = "html" if said.get("type") == "html" else "text"
    draft.offer_summary(Text(value=text_of(element), type=type), rank=1)


def _media_category(
    draft: Draft, element: Element, said: Attributes, scope: Scope
) -> None:
    draft.add_category(
        text_of_title(text_of(element)),
        said.get("scheme", "").strip() or MEDIA_SCHEME,
        text_of_title(said.get("label", "")),
    )


def _media_keywords(
    draft: Draft, element: Element, said: Attributes, scope: Scope
) -> None:
    for keyword in text_of(element).split(","):
        draft.add_category(text_of_title(keyword), MEDIA_SCHEME)


# Three levels, none of which contains itself: nothing here recurses.
_DETAILS: Final = qualified(
    "media",
    {
        "category": _media_category,
        "description": _media_description,
        "keywords": _media_keywords,
        "thumbnail": _thumbnail,
        "title": _media_title,
    },
)
_PARTS: Final = {**_DETAILS, **qualified("media", {"content": _content_in_group})}
MEDIA: Final = {
    **{tag: _kept(read) for tag, read in _DETAILS.items()},
    **qualified(
        "media", {"content": _kept(_content, _DETAILS), "group": _kept(_group, _PARTS)}
    ),
}


_NUMBER = re.compile(r"[-+]?\d{1,3}(?:\.\d{0,30})?")


def read_point(text: str) -> Geo | None:
    """Latitude and longitude, separated by a blank or a comma (both are in use).

    None if they are not a point.
    """
    numbers = text.replace(",", " ").split()
    if len(numbers) < 2 or not all(map(_NUMBER.fullmatch, numbers[:2])):
        return None
    latitude, longitude = map(float, numbers[:2])
    if abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return Geo(latitude=latitude, longitude=longitude)


def _point(draft: Draft, element: Element, scope: Scope) -> None:
    """Read a point. A head has no field for it, and an entry only one."""
    point = read_point(text_of(element))
    if point is None or isinstance(draft, HeadDraft) or draft.geo not in (None, point):
        keep_element(draft.extensions, element)
    else:
        draft.geo = point


def _where(draft: Draft, element: Element, scope: Scope) -> None:
    """Read a GML point; lines, areas and details are kept as extensions.

    The element may also be the ``gml:Point`` itself, in feeds that leave out its
    parent.
    """
    inside = [each for each in element.iter() if local_name(each.tag) != "where"]
    names = [local_name(each.tag) for each in inside]
    is_point = names in (["Point", "pos"], ["Point", "coordinates"], ["pos"])
    position = read_point(_latitude_first(inside[-1])) if is_point else None
    has_details = any(each.attrib for each in inside)
    is_placed = position is not None and not isinstance(draft, HeadDraft)
    if is_placed and draft.geo is None:
        draft.geo = position
    if not is_placed or has_details or draft.geo != position:
        keep_element(draft.extensions, element)


def _latitude_first(element: Element) -> str:
    """The coordinates, latitude first.

    ``gml:coordinates`` are x and y (GML 2.1.2), but ``gml:pos`` in GeoRSS is latitude
    first.
    """
    text = text_of(element)
    if local_name(element.tag) == "pos":
        return text
    return " ".join(reversed(text.replace(",", " ").split()[:2]))


def _latitude(draft: Draft, element: Element, scope: Scope) -> None:
    draft.latitude = text_of(element)
    _meet(draft)


def _longitude(draft: Draft, element: Element, scope: Scope) -> None:
    draft.longitude = text_of(element)
    _meet(draft)


def _meet(draft: Draft) -> None:
    point = read_point(f"{draft.latitude} {draft.longitude}")
    if point and not isinstance(draft, HeadDraft) and draft.geo in (None, point):
        draft.geo = point
        draft.latitude = draft.longitude = ""


def _w3c_point(draft: Draft, element: Element, scope: Scope) -> None:
    for child in element:
        if child.tag in _COORDINATES:
            _COORDINATES[child.tag](draft, child, scope)
        else:
            keep_element(draft.extensions, child)


_COORDINATES: Final = qualified(
    "geo", {"lat": _latitude, "lon": _longitude, "long": _longitude}
)
GEO: Final = {
    **qualified("georss", {"point": _point, "where": _where}),
    **qualified("gml", {"Point": _where, "pos": _where}),
    **_COORDINATES,
    **qualified("geo", {"Point": _w3c_point}),
}


_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _ttl(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.ttl_minutes = whole_number(text_of(element))


def _skip_hours(draft: HeadDraft, element: Element, scope: Scope) -> None:
    """Read hours 0 to 23; RSS 0.91 has 24 for midnight, which becomes 0."""
    keep_element(draft.extensions, element)
    hours = (whole_number(text_of(child)) for child in element)
    skipped = {hour % 24 for hour in hours if hour is not None and hour <= 24}
    draft.skip_hours = tuple(sorted(skipped))


def _skip_days(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    names = {text_of(child)[:3].lower() for child in element}
    draft.skip_days = tuple(
        number for number, name in enumerate(_DAYS) if name in names
    )


def _update_period(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.update_period = text_of(element)


def _update_frequency(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.update_frequency = whole_number(text_of(element))


SCHEDULE: Final = {
    **qualified("rss", {"skipDays": _skip_days, "skipHours": _skip_hours, "ttl": _ttl}),
    **qualified(
        "sy",
        {"updateFrequency": _update_frequency, "updatePeriod": _update_period},
    ),
}


SomeDraft = TypeVar("SomeDraft", bound=Draft)
Handler: TypeAlias = Callable[[SomeDraft, Element, Scope], None]
Table: TypeAlias = Mapping[str, Handler[SomeDraft]]

MODULES: Final[Table[Draft]] = {**DUBLIN_CORE, **GEO, **ITUNES, **MEDIA}


def read_children(
    draft: SomeDraft, element: Element, scope: Scope, table: Table[SomeDraft]
) -> None:
    """Read every child of an item, entry or head into the draft."""
    find = table.get
    for child in element:
        handler = find(child.tag) or find_in_capitals(table, child)
        if handler is None:
            keep_element(draft.extensions, child)
        else:
            handler(draft, child, scope)


def find_in_capitals(
    table: Table[SomeDraft], element: Element
) -> Handler[SomeDraft] | None:
    """The handler for an element by its usual name, to which the element is renamed.

    None if there is none.
    """
    tag = element.tag
    usual = usual_name(tag)
    if usual == tag:
        return None
    handler = table.get(usual)
    if handler is not None:
        element.tag = usual
    return handler
