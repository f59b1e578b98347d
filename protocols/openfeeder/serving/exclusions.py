"""What a page's content must not have (OpenFeeder 4), taken out of its HTML.

Scripts, styles, frames, form fields and what is hidden are never read into blocks at
all, and pictures are no chunks, so that no tracking pixel is left. Here are the others:
advertisements, navigation, consent dialogs, sidebars, footers, share widgets and
comments, as common programs mark them; and the lines that these put under every post.
"""

from __future__ import annotations

import re
from typing import Any, Final

from protocols.scp.elements import take_out

_TAGS: Final = frozenset({"nav", "form", "dialog", "footer", "menu"})
_ROLES: Final = frozenset(
    {
        *("navigation", "banner", "contentinfo", "complementary", "search", "dialog"),
        *("alertdialog", "menu", "menubar", "toolbar"),
    }
)
_MARKED: Final = ("div", "section", "aside", "ul", "ol", "p", "table", "figure", "ins")
"""Elements that classes tell something of; inside of text they are about its look."""
# Whole words of class and id, cut at - and _, so that neither "shadow" nor "leadership"
# are meant.
_WORDS: Final = frozenset(
    {
        *("ad", "ads", "adsbygoogle", "advert", "advertisement", "advertising"),
        *("adslot", "adunit", "sponsor", "sponsored", "promo", "nav", "navbar"),
        *("navigation", "breadcrumb", "breadcrumbs", "sidebar", "newsletter"),
        *("share", "sharing", "sharedaddy", "sharethis", "addthis", "addtoany", "a2a"),
        *("social", "feedflare", "likes", "flattr", "comments", "disqus", "respond"),
        *("relatedposts", "outbrain", "taboola", "mc4wp", "popup", "modal", "gdpr"),
    }
)
_PAIRS: Final = tuple(
    frozenset(each.split())
    for each in (
        *("cookie banner", "cookie consent", "cookie notice", "cookie bar"),
        *("consent banner", "related posts", "related articles", "comment list"),
        *("comment form", "subscribe form", "subscribe box", "tracking pixel"),
    )
)
_CUT = re.compile(r"[^0-9A-Za-z]+|(?<=[a-z])(?=[A-Z])")
_QUOTED = "blockquote"
_BOILERPLATE: Final = tuple(
    re.compile(each, re.IGNORECASE)
    for each in (
        r"the post .{1,300} (?:appeared first on|first appeared on) .{1,200}",
        r"(?:share|like|tweet|pin|email|print|follow) (?:this|it|us)"
        r"(?: (?:post|article|story|on|via|with).{0,60})?\W*",
        r"(?:like|loading|share|tweet|related|advertisements?|sponsored)"
        r"(?: loading)?\W*",
        r"(?:subscribe|sign up) (?:to|for) (?:our|my|the) newsletter.{0,100}",
        r"(?:facebook|twitter|linkedin|reddit|whatsapp|pinterest|email|x)"
        r"(?:[\s,|/\u00b7\u2022]+(?:facebook|twitter|linkedin|reddit|whatsapp|pinterest"
        r"|email|x))+\W*",
    )
)
_LONGEST_BOILERPLATE: Final = 600


def prune(root: Any) -> None:
    """Take what is excluded out of the tree; the text that follows it stays."""
    marked = list(root.iter(*_TAGS, *_MARKED))
    take_out(each for each in marked if each is not root and _is_excluded(each))


def is_boilerplate(text: str) -> bool:
    """Whether a paragraph, list or heading says nothing of the page itself."""
    line = " ".join(text.split())
    if len(line) > _LONGEST_BOILERPLATE:
        return False
    return any(each.fullmatch(line) for each in _BOILERPLATE)


def _is_excluded(element: Any) -> bool:
    if element.tag in _TAGS:
        # The source of a quotation commonly stands in its footer.
        is_cited = element.tag == "footer" and _is_quoted(element)
        return not is_cited
    if (role := element.get("role")) and role.strip().lower() in _ROLES:
        return True
    marks = f"{element.get('class') or ''} {element.get('id') or ''}"
    words = {word.lower() for word in _CUT.split(marks)}
    return not _WORDS.isdisjoint(words) or any(pair <= words for pair in _PAIRS)


def _is_quoted(element: Any) -> bool:
    return next(element.iterancestors(_QUOTED), None) is not None
