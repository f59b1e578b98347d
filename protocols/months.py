"""The names of months, in the languages that feeds are written in."""

# ruff: noqa: RUF001 (letters of many scripts)

from __future__ import annotations

from typing import Final

# English and Catalan to Ukrainian, some forty languages; where two of them disagree,
# the one more written in.
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan ene gen янв sty ian led oca tam січ ιαν jän sij sau jaa xan urt ion"
            " јан яну сту ينا ינו 一月",
            "feb fev fév fêv фев lut úno şub hel лют φεβ vel vas vee ots shk chw peb"
            " феб فبر פבר 二月",
            "mar mär mrt мар mrz mær már bře maa бер μαρ μάρ ožu kov mac maw"
            " сак مار מרץ מרס 三月",
            "apr avr abr апр kwi ápr dub nis huh кві απρ tra bal pri ebr"
            " кра أبر ابر إبر אפר 四月",
            "may mai mag mei maj мая май máj kvě tou тра μάι μαΐ μαϊ svi geg maí"
            " мај ماي מאי 五月",
            "jun jui giu июн cze iun jún čer haz kes чер jūn bir xuñ eka qer meh hun"
            " јун юни чэр يون יונ 六月",
            "jul lug июл lip iul júl čvc tem hei лип jūl lie xul uzt kor gor hul"
            " јул юли ліп يول יול 七月",
            "aug aoû aou ago авг sie août srp ağu elo сер αυγ αύγ agu avg kol ágú abu"
            " gus aws ogo жні أغس اغس אוג 八月",
            "sep set сен wrz sze zář eyl syy вер σεπ ruj ira sht med сеп سبت ספט 九月",
            "oct okt out ott окт paź říj eki lok жов οκτ spa urr tet hyd"
            " кас أكت اكت אוק 十月",
            "nov noi ноя lis kas лис νοέ νοε lap stu aza nën tac nóv nob"
            " ное ліс نوف נוב 十一月",
            "dec dez dic déc дек gru des pro ara jou гру δεκ det abe dhj rha dis"
            " дец сне ديس דצמ 十二月",
        ),
        start=1,
    )
    for name in names.split()
}
# Longer than three letters, where the first three are another month's as well.
_LONGER_MONTHS: Final = {
    "juil": 7,
    "juun": 6,
    "juul": 7,
    "lipa": 6,
    "lipn": 6,
    "marr": 11,
    "rugp": 8,
    "rugs": 9,
    "srpan": 7,
    "srpnj": 7,
    "červenc": 7,
    "červene": 7,
    "ιούλ": 7,
    "ιουλ": 7,
    "ιούν": 6,
    "ιουν": 6,
}
_ALL_MONTHS: Final = _MONTHS | _LONGER_MONTHS
_IN_HEBREW: Final = "ב"


def month_number(name: str) -> int | None:
    """1 to 12, by how a name begins; ``None`` for what is no month."""
    name = name.lower()
    for length in (7, 5, 4, 3, 2):
        if name[:length] in _ALL_MONTHS:
            return _ALL_MONTHS[name[:length]]
    return month_number(name[1:]) if name.startswith(_IN_HEBREW) else None
