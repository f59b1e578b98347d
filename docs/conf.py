"""How Sphinx makes a site of these pages, which are to be read without it as well.

``scripts/manual`` calls it. The order of the pages and what the sidebar has are what
``index.md`` lists.
"""

from pathlib import Path

from hub import __version__ as release
from scripts.manual_contents import read_contents
from scripts.manual_reference import with_made_parts

HERE = Path(__file__).parent
project = "Fanfare"
version = release
extensions = ["myst_parser"]
exclude_patterns = ["receivers"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nitpicky = True
smartquotes = False
html_theme = "furo"
html_title = f"Fanfare {release}"
html_extra_path = ["llms.txt"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#a3320b",
        "color-brand-content": "#a3320b",
    },
    "dark_css_variables": {
        "color-brand-primary": "#ff9a70",
        "color-brand-content": "#ff9a70",
    },
}


def add_sidebar(app, docname, source):
    """Below the index, what its lists have, hidden: a git host shows the lists."""
    if docname == "index":
        for section in read_contents(source[0]):
            pages = "\n".join(page.path for page in section.pages)
            caption = f":caption: {section.title}"
            source[0] += f"\n```{{toctree}}\n:hidden:\n{caption}\n\n{pages}\n```\n"


def add_made_parts(app, docname, source):
    source[0] = with_made_parts(source[0])


def copy_pages(app, error):
    """The Markdown beside the HTML: llms.txt leads there."""
    if error is None and app.builder.name == "html":
        for page in HERE.rglob("*.md"):
            text = with_made_parts(page.read_text())
            (Path(app.outdir) / page.relative_to(HERE)).write_text(text)


def setup(app):
    app.connect("source-read", add_sidebar)
    app.connect("source-read", add_made_parts)
    app.connect("build-finished", copy_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
