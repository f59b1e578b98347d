"""What is taken out of a page's tree, and what that costs."""

from __future__ import annotations

from lxml import etree

from protocols.openfeeder.write.page_chunks import prune

RUN = 2_000


class Counting(etree.ElementBase):
    """Counts the characters that are put into a tree."""

    written = 0

    @property
    def text(self) -> str | None:
        return super().text

    @text.setter
    def text(self, value: str) -> None:
        Counting.written += len(value)
        etree.ElementBase.text.__set__(self, value)

    @property
    def tail(self) -> str | None:
        return super().tail

    @tail.setter
    def tail(self, value: str) -> None:
        Counting.written += len(value)
        etree.ElementBase.tail.__set__(self, value)


def a_tree(markup: str) -> Counting:
    parser = etree.HTMLParser()
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=Counting))
    tree: Counting = etree.fromstring(f"<div>{markup}</div>", parser)
    Counting.written = 0
    return tree


def test_text_between_what_is_taken_out_stays_in_its_place() -> None:
    tree = a_tree("1<nav></nav>2<nav></nav>3<b>4</b>5<nav></nav>6<!-- --><nav></nav>7")

    prune(tree)

    assert b"<nav" not in etree.tostring(tree)
    assert b"123<b>4</b>56<!-- -->7" in etree.tostring(tree)


def test_a_long_run_is_taken_out_at_the_cost_of_its_text() -> None:
    for before in ("", "<b>x</b>"):
        tree = a_tree(before + "<nav></nav>text" * RUN)

        prune(tree)

        assert "".join(tree.itertext()).endswith("text" * RUN)
        assert 0 < Counting.written <= len("text") * RUN
