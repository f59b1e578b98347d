"""Made-up writing: words, titles, and HTML as publishing programs write it."""

from __future__ import annotations

from random import Random
from typing import Final

_WORDS: Final = """
the of and to a in is that for it as was with be by on not he his but at are this have
from or had an they which one you were her all she there would their we him been has
when who will more no if out so said what up its about into than them can only other
new some could time these two may then do first any my now such like our over man me
even most made after also did many before must through years where much your way well
down should because each just those people how too little state good very make world
still own see men work long get here between both life being under never day same
another know while last might us great old year off come since against go came right
used take three café naïve election budget weather harbour station museum library
engine protocol release parser garden recipe journey mountain council minister
champion season station software database network camera review interview episode
chapter “quoted” €
""".split()  # noqa: SIM905 - for people to read
_NAMES: Final = ("Ada Vale", "José Marín", "M. Okafor", "Lena Fuchs", "Tom O'Brien")
_TERMS: Final = ("News", "Open Source", "Politik", "Travel", "R&D", "Culture", "Sport")
_SITE: Final = "https://www.site{}.example"


def words(random: Random, count: int) -> str:
    return " ".join(random.choices(_WORDS, k=count))


def sentence(random: Random) -> str:
    return words(random, random.randint(7, 20)).capitalize() + "."


def title(random: Random) -> str:
    return words(random, random.randint(4, 11)).capitalize()


def name(random: Random) -> str:
    return random.choice(_NAMES)


def terms(random: Random) -> list[str]:
    return random.sample(_TERMS, random.randint(0, 4))


def site(random: Random) -> str:
    return _SITE.format(random.randrange(10_000))


def html(random: Random, size: int, *, root: str, is_xhtml: bool = False) -> str:
    """About ``size`` characters; ``root`` precedes paths ("" for relative URLs)."""
    blocks: list[str] = []
    length = 0
    while length < size:
        block = _block(random, root)
        blocks.append(block)
        length += len(block) + 1
    text = "\n".join(blocks)
    return text if is_xhtml else text.replace(" />", ">").replace("&#160;", "&nbsp;")


def _block(random: Random, root: str) -> str:
    kind = random.random()
    if kind < 0.72:
        return f"<p>{_run(random, root)}</p>"
    if kind < 0.82:
        return _figure(random, root)
    if kind < 0.88:
        return f'<h2 class="wp-block-heading">{title(random)}</h2>'
    if kind < 0.95:
        items = "".join(f"<li>{_run(random, root)}</li>\n" for _ in range(3))
        return f"<ul>\n{items}</ul>"
    if kind < 0.98:
        return f"<blockquote>\n<p>{_run(random, root)}</p>\n</blockquote>"
    code = "\n".join(f"if (a &lt; b &amp;&amp; c) {{ run({n}); }}" for n in range(6))
    return f'<pre><code class="language-js">{code}</code></pre>'


def _run(random: Random, root: str) -> str:
    return " ".join(_inline(random, root) for _ in range(random.randint(1, 5)))


def _inline(random: Random, root: str) -> str:
    kind = random.random()
    if kind < 0.35:
        return sentence(random)
    if kind < 0.65:
        href = f"{root}/{random.randrange(10**6)}/?a=1&amp;b=2"
        return f'{words(random, 6)} <a href="{href}" rel="noopener">{name(random)}</a>'
    if kind < 0.8:
        return f"<strong>{words(random, 2)}</strong> {words(random, 5)}"
    if kind < 0.9:
        return f'<span style="font-weight: 400;">{words(random, 8)}</span>'
    return f"It&#8217;s&#160;<em>{words(random, 2)}</em> {sentence(random)}<br />"


def _figure(random: Random, root: str) -> str:
    image = f"{root}/wp-content/uploads/2026/05/{random.randrange(10**6)}"
    sources = ", ".join(f"{image}-{w}x{w}.jpg {w}w" for w in (300, 768, 1024))
    return (
        f'<figure class="wp-block-image size-large"><img decoding="async"'
        f' width="1024" height="683" src="{image}.jpg" alt="{words(random, 5)}"'
        f' srcset="{sources}" sizes="(max-width: 1024px) 100vw, 1024px" />'
        f"<figcaption>{sentence(random)}</figcaption></figure>"
    )
