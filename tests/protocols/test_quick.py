"""What is made quickly is what `dataclasses` would have made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from protocols.quick import changed, maker, maker_by_position, quick_init
from storage.records import Polling


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    name: str
    count: int = 3
    tags: list[str] = field(default_factory=list)


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    name: str
    count: int = 3
    tags: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "a"},
        {"name": "a", "count": 0},
        {"name": "a", "tags": ["x"]},
        {"tags": [], "count": 1, "name": ""},
    ],
)
def test_it_has_the_same_parameters_and_defaults(given: dict[str, Any]) -> None:
    plain, quick = Plain(**given), Quick(**given)

    assert repr(quick) == repr(plain).replace("Plain", "Quick")
    assert quick == Quick(**given)
    assert repr(replace(quick, count=9)) == (
        repr(replace(plain, count=9)).replace("Plain", "Quick")
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, r"Quick.__init__\(\) missing .* 'name'"),
        ({"name": "a", "color": "red"}, r"unexpected keyword argument 'color'"),
    ],
)
def test_it_complains_alike(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        Quick(**given)


def test_it_takes_no_positions() -> None:
    with pytest.raises(TypeError):
        Quick("a")  # type: ignore[misc]


def test_what_is_made_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Quick(name="a").name = "b"  # type: ignore[misc]


def test_no_two_share_what_a_factory_made() -> None:
    assert Quick(name="a").tags is not Quick(name="a").tags
    assert Polling().hints == Polling().hints


def test_what_it_cannot_make_is_refused() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Checked:
        name: str

        def __post_init__(self) -> None:
            raise AssertionError

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Counted:
        name: str
        length: int = field(init=False, default=0)

    @dataclass(frozen=True, kw_only=True)
    class Loose:
        name: str

    for each in (Checked, Counted, Loose):
        with pytest.raises(TypeError, match=each.__name__):
            quick_init(each)


def test_a_changed_copy_has_all_other_values() -> None:
    before = Quick(name="a", tags=["x"])

    after = changed(before, count=0, name="")

    assert after == Quick(name="", count=0, tags=["x"])
    assert after == replace(before, count=0, name="")
    assert before.count == 3


def test_what_is_no_field_cannot_be_changed() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        changed(Quick(name="a"), color="red")  # type: ignore[call-arg]


new_quick = maker(Quick)
new_quick_of = maker_by_position(Quick)


@pytest.mark.parametrize(
    "given",
    [{"name": "a"}, {"name": "a", "count": 0}, {"name": "a", "tags": ["x"]}],
)
def test_a_maker_makes_what_the_class_does(given: dict[str, Any]) -> None:
    made = new_quick(**given)

    assert made == Quick(**given)
    assert type(made) is Quick
    assert changed(made, count=9) == Quick(**given | {"count": 9})
    assert hash(made.name) == hash(Quick(**given).name)


def test_a_maker_takes_all_fields_in_their_order() -> None:
    assert new_quick_of("a", 1, ["x"]) == Quick(name="a", count=1, tags=["x"])


def test_what_a_maker_makes_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        new_quick(name="a").name = "b"  # type: ignore[misc]


def test_no_two_of_a_maker_share_what_a_factory_made() -> None:
    assert new_quick(name="a").tags is not new_quick(name="a").tags
