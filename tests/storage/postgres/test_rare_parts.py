from __future__ import annotations

import pytest

from storage.postgres.rare_parts import rarest, word_parts

ADDRESSES = [f"https://s{number}.example/callback" for number in range(12, 34)]


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        (["S123"], ("s12", "123")),
        (["a.bc/def"], ("def",)),
        (["abcabc"], ("abc", "bca", "cab")),
        (["ab", "", "été"], ()),
    ],
)
def test_parts_are_of_three_letters_or_digits(
    texts: list[str], parts: tuple[str, ...]
) -> None:
    assert word_parts(texts) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("s7000.example/call", ("s70", "700", "000")),
        ("s22.ex", ("s22",)),
        ("s2example", ("s2e", "2ex")),
        ("https://", ()),
    ],
)
def test_what_half_of_the_addresses_have_finds_nothing(
    text: str, parts: tuple[str, ...]
) -> None:
    assert rarest(word_parts([text]), ADDRESSES) == parts
