"""Parts of a page: which of them are told after they changed, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from jinja2 import Environment
from markupsafe import Markup

from hub.web.page_parts import (
    PageParts,
    PartRecorder,
    all_parts,
    changed_parts,
    live_element,
    live_rows,
)

TABLE = Environment(autoescape=True).from_string(
    '{% call live("count", "p") %}{{ rows | length }} rows{% endcall %}'
    '{% call live("rows", "tbody", class=mark, data_label="a b") %}'
    "{% for id, name in rows %}"
    '{% call live("row-" ~ id, "tr") %}<td>{{ name }}</td>{% endcall %}'
    "{% endfor %}{% endcall %}"
)
Row = tuple[int, str]
FIRST: Sequence[Row] = ((1, "one"), (2, "two"))


def record(rows: Sequence[Row], mark: str = "") -> PageParts:
    recorder = PartRecorder()
    TABLE.render(rows=rows, mark=mark, live=recorder.element)
    return recorder.parts


def changes(now: Sequence[Row], mark: str = "") -> list[str]:
    return changed_parts(record(FIRST), record(now, mark))


def body(*rows: str, mark: str = "") -> str:
    written = f' class="{mark}"' if mark else ""
    inside = "".join(rows)
    return f'<tbody id="rows" data-live{written} data-label="a b">{inside}</tbody>'


def row(id: int, name: str) -> str:
    return f'<tr id="row-{id}" data-live><td>{name}</td></tr>'


def kept(id: int) -> str:
    return f'<tr id="row-{id}" data-keep></tr>'


def test_a_page_that_is_sent_once_has_all_parts_in_their_places() -> None:
    page = TABLE.render(rows=FIRST, mark="", live=live_element)
    count = '<p id="count" data-live>2 rows</p>'
    assert page == count + body(row(1, "one"), row(2, "two"))
    assert [page] == ["".join(all_parts(record(FIRST)))]


def test_nothing_is_told_of_what_is_as_it_was() -> None:
    assert changes(FIRST) == []


def test_a_row_that_changed_comes_without_its_table() -> None:
    assert changes(((1, "one"), (2, "other"))) == [row(2, "other")]


@pytest.mark.parametrize(
    ("now", "rows"),
    [
        (((3, "three"), *FIRST), (row(3, "three"), kept(1), kept(2))),
        (((2, "two"),), (kept(2),)),
        (((2, "other"), (1, "one")), (row(2, "other"), kept(1))),
    ],
    ids=["new", "gone", "moved and changed"],
)
def test_a_table_with_other_rows_comes_with_those_that_changed(
    now: Sequence[Row], rows: Sequence[str]
) -> None:
    told = [each for each in changes(now) if "tbody" in each]
    assert told == [body(*rows)]


def test_attributes_are_part_of_it_and_escaped() -> None:
    [told] = changes(FIRST, mark='"><b>')
    assert told == body(kept(1), kept(2), mark="&#34;&gt;&lt;b&gt;")


def test_what_a_feed_says_is_no_place_of_a_part() -> None:
    told = changes(((1, "\0row-2\0"), (2, "two")))
    assert told == [row(1, "\0row-2\0")]


@pytest.mark.parametrize("live", [live_element, PartRecorder().element])
@pytest.mark.parametrize("id", ["", "Row", '1"', "a b"])
def test_an_id_is_plain(live: object, id: str) -> None:
    template = Environment(autoescape=True).from_string(
        "{% call live(id) %}{% endcall %}"
    )
    with pytest.raises(ValueError, match="expected an id"):
        template.render(live=live, id=id)


def test_two_parts_of_a_page_have_no_id_in_common() -> None:
    with pytest.raises(ValueError, match="two parts"):
        record((*FIRST, (1, "again")))


def test_what_is_made_of_the_same_is_made_once() -> None:
    template = Environment(autoescape=True).from_string(
        '{% call live("rows", "tbody", of=rows) %}{% for id, name in rows %}'
        '{% call live("row-" ~ id, "tr", of=name) %}{{ made(name) }}{% endcall %}'
        "{% endfor %}{% endcall %}"
    )
    recorder, made, shown = PartRecorder(), list[str](), list[PageParts]()

    def make(name: str) -> str:
        made.append(name)
        return name

    for now in (FIRST, list(FIRST), ((2, "two"), (1, "other"))):
        recorder.begin()
        template.render(rows=tuple(now), made=make, live=recorder.element)
        shown.append(recorder.parts)
    assert made == ["one", "two", "other"]
    assert changed_parts(shown[0], shown[1]) == []
    [told] = changed_parts(shown[1], shown[2])
    assert kept(2) in told
    assert ">other</tr>" in told


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRow:
    id: str
    html: Markup


READY = Environment(autoescape=True).from_string(
    '{% call live("rows", "tbody") %}{{ live_rows(rows) }}{% endcall %}'
)


def test_rows_that_are_made_already_are_parts_of_their_table() -> None:
    one, two, other = (
        ReadyRow(id=id, html=Markup("<td>%s</td>") % id)
        for id in ("one", "two", "other")
    )
    recorder, shown = PartRecorder(), list[PageParts]()
    for rows in ((one, two), (one, two), (other, two)):
        recorder.begin()
        READY.render(rows=rows, live=recorder.element, live_rows=recorder.rows)
        shown.append(recorder.parts)
    sent = READY.render(rows=(one, two), live=live_element, live_rows=live_rows)
    assert [sent] == all_parts(shown[0])
    assert changed_parts(shown[0], shown[1]) == []
    [told] = changed_parts(shown[1], shown[2])
    assert '<tr id="other" data-live><td>other</td></tr>' in told
    assert '<tr id="two" data-keep></tr>' in told
    with pytest.raises(ValueError, match="two parts"):
        recorder.rows((two,))
