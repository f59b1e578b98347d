"""The names of months, in the languages that feeds are written in."""

from __future__ import annotations

from typing import Final

# English, Catalan, Czech, Danish, Dutch, Finnish, French, German, Greek, Hungarian,
# Indonesian, Italian, Norwegian, Polish, Portuguese, Romanian, Russian, Spanish,
# Swedish, Turkish and Ukrainian; where two of them disagree, the one more written in.
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan ene gen янв sty ian led oca tam січ ιαν",  # noqa: RUF001
            "feb fev fév fêv фев lut úno şub hel лют φεβ",
            "mar mär mrt мар mrz mær már bře maa бер μαρ μάρ",  # noqa: RUF001
            "apr avr abr апр kwi ápr dub nis huh кві απρ",
            "may mai mag mei maj мая май máj kvě tou тра μάι μαΐ μαϊ",
            "jun jui giu июн cze iun jún čer haz kes чер",
            "jul lug июл lip iul júl čvc tem hei лип",
            "aug aoû aou ago авг sie août srp ağu elo сер αυγ αύγ agu",  # noqa: RUF001
            "sep set сен wrz sze zář eyl syy вер σεπ",
            "oct okt out ott окт paź říj eki lok жов οκτ",
            "nov noi ноя lis kas лис νοέ νοε",
            "dec dez dic déc дек gru des pro ara jou гру δεκ",  # noqa: RUF001
        ),
        start=1,
    )
    for name in names.split()
}
# Longer than three letters, where the first three are another month's as well.
_LONGER_MONTHS: Final = {
    "juil": 7,
    "marr": 11,
    "červenc": 7,
    "červene": 7,
    "ιούλ": 7,
    "ιουλ": 7,
    "ιούν": 6,
    "ιουν": 6,  # noqa: RUF001
}
_ALL_MONTHS: Final = _MONTHS | _LONGER_MONTHS


def month_number(name: str) -> int | None:
    """1 to 12, by how a name begins; ``None`` for what is no month."""
    name = name.lower()
    for length in (7, 4, 3):
        if name[:length] in _ALL_MONTHS:
            return _ALL_MONTHS[name[:length]]
    return None
