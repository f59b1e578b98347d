"""The properties of audio, video and pictures that an entry encloses.

Each format has its own terms: Media RSS, podcast elements, attachments of JSON Feed,
media of a creator's feed.json, blocks of SCP. All of them are in the entry's extensions
as written; this module turns them into one `EnclosedFile` for each file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from protocols.languages import language_tag
from protocols.model import Entry, Extensions, Link, first_href
from protocols.text import collapse
from protocols.urls import is_web_url, resolve

MOST_FILES: Final = 100
"""The number of one entry's files that are described; the rest are only links."""
_MOST_CAPTIONS: Final = 50
_LONGEST_SIDE: Final = 1_000_000
_LONGEST_SECONDS: Final = 9_999_999
_CLOCK: Final = re.compile(r"(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2})(?:\.\d+)?")
_ISO: Final = re.compile(r"PT(?:(\d{1,4})H)?(?:(\d{1,6})M)?(?:(\d{1,7})(?:\.\d+)?S)?")
_WEBVTT: Final = "text/vtt"
_UNTOLD: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Media types that do not say what kind of file it is."""
_TYPES: Final = {
    "3gp": "video/3gpp",
    "aac": "audio/aac",
    "aif": "audio/aiff",
    "aiff": "audio/aiff",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "epub": "application/epub+zip",
    "flac": "audio/flac",
    "gif": "image/gif",
    "heic": "image/heic",
    "ico": "image/vnd.microsoft.icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "m4a": "audio/mp4",
    "m4b": "audio/mp4",
    "m4v": "video/mp4",
    "mid": "audio/midi",
    "mka": "audio/matroska",
    "mkv": "video/matroska",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "mpg": "video/mpeg",
    "oga": "audio/ogg",
    "ogg": "audio/ogg",
    "ogv": "video/ogg",
    "opus": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "wav": "audio/wav",
    "weba": "audio/webm",
    "webm": "video/webm",
    "webp": "image/webp",
    "wma": "audio/x-ms-wma",
    "wmv": "video/x-ms-wmv",
    "zip": "application/zip",
}
_Said: TypeAlias = Mapping[str, Any]
_Value = TypeVar("_Value")


class Captions(Struct, frozen=True, kw_only=True):
    """A file of captions or subtitles, in WebVTT."""

    url: str
    language: str = ""
    label: str = ""


class EnclosedFile(Struct, frozen=True, kw_only=True):
    """A file and what is known about it; 0 and "" stand for what is not known.

    ``kind`` is ``audio``, ``video``, ``image``, or "" for any other file.
    """

    href: str
    kind: str = ""
    type: str = ""
    title: str = ""
    seconds: int = 0
    width: int = 0  # pixels
    height: int = 0
    poster: str = ""
    captions: tuple[Captions, ...] = ()
    is_linked: bool = True  # an enclosure of the entry, not only another source of one


def type_by_name(url: str) -> str:
    """The media type for a file name's extension; "" if there is none or it is
    unknown.
    """
    if "?" in url or "#" in url:
        url = url.partition("?")[0].partition("#")[0]
    ending = url.rpartition(".")[2]
    return _TYPES.get(ending) or _TYPES.get(ending.lower(), "")


def name_of_file(url: str) -> str:
    """The last segment of the URL's path, without its extension; "" if it is empty."""
    path = unquote(urlsplit(url).path)
    return collapse(path.rpartition("/")[2].rpartition(".")[0])


def type_of_file(declared: str, url: str) -> str:
    """The declared type without parameters, or the type by the file's name if none is
    declared or the declared one says nothing.
    """
    essence = declared.partition(";")[0].strip().lower()
    return type_by_name(url) or essence if essence in _UNTOLD else essence


def kind_of(type: str) -> str:
    """``audio``, ``video`` or ``image``; "" for any other media type."""
    kind = type.partition("/")[0].strip().lower()
    return kind if kind in ("audio", "video", "image") else ""


def enclosed_files(entry: Entry) -> tuple[EnclosedFile, ...]:
    """The entry's enclosures in order, then other sources of them."""
    links = [link for link in entry.links if link.rel == "enclosure"]
    if not links:
        return ()
    said = {each.href: each for each in _described(entry.extensions)}
    files = [_file_of(link, said) for link in links[:MOST_FILES]]
    known = {each.href for each in files}
    further = [each for each in _further_sources(entry.extensions) if each.href]
    files += [each for each in further if each.href not in known]
    entry_seconds = seconds_of(_word(entry.extensions, "itunes", "duration"))
    captions = _transcripts(entry.extensions)
    whole = (_with_whole(each, entry_seconds, captions) for each in files[:MOST_FILES])
    page = first_href(entry.links, "alternate")
    return tuple(_with_addresses(each, page) for each in whole)


def seconds_of(stated: object) -> int:
    """A duration in seconds, from ``3723``, ``62:03``, ``1:02:03`` or ``PT1H``.

    0 for anything else.
    """
    if not stated:  # usually there is none
        return 0
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return int(stated) if 0 < stated <= _LONGEST_SECONDS else 0
    text = stated.strip() if isinstance(stated, str) else ""
    whole = text.partition(".")[0]
    if whole.isascii() and whole.isdigit() and len(whole) <= 7:
        return int(whole)
    found = _CLOCK.fullmatch(text) or _ISO.fullmatch(text)
    if found is None:
        return 0
    hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return min(hours * 3_600 + minutes * 60 + seconds, _LONGEST_SECONDS)


def _file_of(link: Link, said: Mapping[str, EnclosedFile]) -> EnclosedFile:
    """The file of a link; the link's own type and title take precedence."""
    found = said.get(link.href) or _found_by_end(link.href, said)
    type = type_of_file(link.type, link.href)
    if type in _UNTOLD:
        type = found.type
    return replace(
        found,
        href=link.href,
        type=type,
        kind=kind_of(type) or found.kind,
        title=collapse(link.title) or found.title,
    )


def _found_by_end(href: str, said: Mapping[str, EnclosedFile]) -> EnclosedFile:
    """The file described under a relative URL that ``href`` ends with.

    Extensions hold URLs as written, so they may be relative.
    """
    for written, file in said.items():
        end = written.lstrip("./")
        if end and "://" not in end and href.endswith(f"/{end}"):
            return file
    return EnclosedFile(href=href)


def _with_whole(
    file: EnclosedFile, seconds: int, captions: tuple[Captions, ...]
) -> EnclosedFile:
    """Add the entry's duration and captions to an audio or video file that has none."""
    if file.kind not in ("audio", "video"):
        return file
    return replace(
        file,
        seconds=file.seconds or seconds,
        captions=file.captions or captions,
    )


def _with_addresses(file: EnclosedFile, page: str) -> EnclosedFile:
    """Make the URLs of poster and captions absolute, and drop those that cannot be.

    Extensions hold URLs as written. The base is the entry's page, or else the file.
    """
    if not (file.poster or file.captions):
        return file
    base = page or file.href
    poster = resolve(file.poster, base)
    captions = (replace(each, url=resolve(each.url, base)) for each in file.captions)
    return replace(
        file,
        poster=poster if is_web_url(poster) else "",
        captions=tuple(each for each in captions if is_web_url(each.url)),
    )


def _described(extensions: Extensions) -> Iterator[EnclosedFile]:
    """All descriptions of files. A later one of the same file replaces an earlier one,
    so a format's own terms take precedence.
    """
    yield from _of_media_rss(extensions)
    for each in _objects(_member(extensions, "jsonfeed", "attachments")):
        yield _described_file(
            _text(each.get("url")),
            type=_text(each.get("mime_type")),
            title=_text(each.get("title")),
            seconds=each.get("duration_in_seconds"),
        )
    for each in _objects(_member(extensions, "creator", "media")):
        yield _described_file(
            _text(each.get("url")),
            type=_text(each.get("mime")),
            kind=_text(each.get("kind")),
            seconds=each.get("durationSec"),
            sides=each,
            poster=_text(each.get("thumbnail")),
            captions=_captions([each], "transcript"),
        )
    for each in _objects(_member(extensions, "scp", "media")):
        yield from _of_block(each)


def _of_media_rss(extensions: Extensions) -> Iterator[EnclosedFile]:
    """The files of Media RSS.

    Elements beside a ``media:content``, or in its group, describe it as well (Media RSS
    1.5.1: elements at a deeper level take precedence).
    """
    media = extensions.get("media")
    whole = media if isinstance(media, dict) else {}
    for group in (*_objects(whole.get("group")), whole):
        contents = _objects(group.get("content"))[:MOST_FILES]
        # A group holds versions of one thing: what one of them says applies to all.
        shared = (*contents, group, whole) if group is not whole else (whole,)
        for content in contents:
            levels = (content, *shared)
            yield _described_file(
                _text(content.get("url")),
                type=_text(content.get("type")),
                kind=_text(content.get("medium")),
                title=_first((_plain(each.get("title")) for each in levels), ""),
                seconds=_first(
                    (seconds_of(each.get("duration")) for each in levels), 0
                ),
                sides=content,
                poster=_first(_posters(levels), ""),
                captions=_captions(
                    [one for each in levels for one in _objects(each.get("subTitle"))],
                    "href",
                ),
            )


def _posters(levels: Iterable[_Said]) -> Iterator[str]:
    for level in levels:
        for thumbnail in _objects(level.get("thumbnail")):
            yield _text(thumbnail.get("url"))


def _of_block(block: _Said) -> Iterator[EnclosedFile]:
    """The files of an SCP audio or video block: ``url`` is one URL or a list with
    types.
    """
    listed = block.get("url")
    urls = [{"href": listed}] if isinstance(listed, str) else _objects(listed)
    icon = block.get("icon")
    for url in urls[:MOST_FILES]:
        yield _described_file(
            _text(url.get("href")),
            type=_text(url.get("mediaType")),
            kind=_text(block.get("type")),
            title=_text(block.get("name")),
            seconds=block.get("duration"),
            sides=block,
            poster=_text(icon.get("url")) if isinstance(icon, dict) else "",
            captions=_captions(_objects(block.get("captions")), "url"),
        )


def _further_sources(extensions: Extensions) -> Iterator[EnclosedFile]:
    """``podcast:alternateEnclosure``: the same content in another encoding or size.

    Its title names the version, not the content.
    """
    listed = _objects(_member(extensions, "podcast", "alternateEnclosure"))
    for each in listed[:MOST_FILES]:
        for source in _objects(each.get("source"))[:1]:
            url = _text(source.get("uri"))
            if url.startswith(("https://", "http://")):
                type = _text(source.get("contentType")) or _text(each.get("type"))
                file = _described_file(url, type=type, sides=each)
                yield replace(file, is_linked=False)


def _transcripts(extensions: Extensions) -> tuple[Captions, ...]:
    """The timed transcripts (``podcast:transcript`` in WebVTT) as captions."""
    listed = _objects(_member(extensions, "podcast", "transcript"))
    return _captions(
        [each for each in listed if _text(each.get("type")).lower() == _WEBVTT], "url"
    )


def _described_file(
    href: str,
    *,
    type: str,
    kind: str = "",
    title: str = "",
    seconds: object = 0,
    sides: _Said | None = None,
    poster: str = "",
    captions: tuple[Captions, ...] = (),
) -> EnclosedFile:
    type = type_of_file(type, href)
    return EnclosedFile(
        href=href,
        kind=kind_of(type) or kind_of(kind),
        type=type,
        title=collapse(title),
        seconds=seconds_of(seconds),
        width=_pixels(sides.get("width")) if sides else 0,
        height=_pixels(sides.get("height")) if sides else 0,
        poster=poster,
        captions=captions,
    )


def _captions(listed: Iterable[_Said], name: str) -> tuple[Captions, ...]:
    """The captions in WebVTT, recognized by type or by file name; each file once."""
    found: dict[str, Captions] = {}
    for each in listed:
        url = _text(each.get(name))
        if url and _is_webvtt(_text(each.get("type")), url):
            said = _text(each.get("lang")) or _text(each.get("language"))
            language = language_tag(said)
            label = collapse(_text(each.get("label")))
            found.setdefault(url, Captions(url=url, language=language, label=label))
    return tuple(found.values())[:_MOST_CAPTIONS]


def _is_webvtt(type: str, url: str) -> bool:
    if type.partition(";")[0].strip().lower() == _WEBVTT:
        return True
    return url.partition("?")[0].partition("#")[0].lower().endswith(".vtt")


def _pixels(value: object) -> int:
    """A size in pixels, from a number or from digits with or without ``px``."""
    if isinstance(value, str):
        digits = value.strip().removesuffix("px")
        value = int(digits) if re.fullmatch("[0-9]{1,7}", digits) else 0
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= _LONGEST_SIDE else 0


def _objects(value: object) -> list[_Said]:
    """The value as a list: extensions hold one element as a mapping, several as a
    list.
    """
    if value is None:
        return []
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, dict)]


def _member(extensions: Extensions, prefix: str, name: str) -> Any:
    group = extensions.get(prefix)
    return group.get(name) if isinstance(group, dict) else None


def _word(extensions: Extensions, prefix: str, name: str) -> str:
    return _text(_member(extensions, prefix, name))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _plain(value: object) -> str:
    """An element's text; an element with attributes keeps its text under ``value``."""
    return _text(value.get("value") if isinstance(value, dict) else value)


def _first(values: Iterable[_Value], nothing: _Value) -> _Value:
    """The first value that is not empty, or else ``nothing``."""
    return next((each for each in values if each), nothing)
