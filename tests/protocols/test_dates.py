from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.dates import LONGEST, parse_date

TEN = datetime(2020, 1, 11, 10, 0, tzinfo=UTC)
MIDNIGHT = datetime(2020, 1, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        # RFC 822 and its neighbours
        ("Sat, 11 Jan 2020 10:00:00 GMT", TEN),
        ("  Sat, 11 Jan 2020 10:00:00 GMT\n", TEN),
        ("11 Jan 2020 10:00:00 +0000", TEN),
        ("Sat,11 Jan 2020 10:00:00 +00:00", TEN),
        ("Sat, 11 Jan 2020 10:00 UT", TEN),
        ("Sat, 11 Jan 20 10:00:00 Z", TEN),
        ("Mon, 11 Jan 2020 10:00:00 GMT", TEN),  # it was no Monday
        ("Saturday, 11 January 2020 10:00:00 GMT", TEN),
        ("Sat, 11 Jan 2020 12:00:00 +0200", TEN),
        ("Sat, 11 Jan 2020 12:00:00 GMT+2", TEN),
        ("Sat, 11 Jan 2020 12:00:00 +0200 (CEST)", TEN),
        ("Sat, 11 Jan 2020 05:00:00 EST", TEN),
        ("Sat, 11 Jan 2020 03:00:00 PDT", TEN),
        ("Sat, 11 Jan 2020 11:00:00 CET", TEN),
        ("Sat, 11 Jan 2020 15:30:00 +0530", TEN),
        ("Sat, 11 Jan 2020 10:00:00 XYZ", TEN),  # nobody knows it: UTC
        ("Sat, 11 Jan 2020 10:00:00.000 GMT", TEN),
        ("11-Jan-2020 10:00", TEN),
        ("Sat, 11 Jan 2020", MIDNIGHT),
        ("Sat, 11 Jan 98 10:00:00 GMT", TEN.replace(year=1998)),
        ("Sat, 11 Jan 120 10:00:00 GMT", TEN),
        ("Fri, 10 Jan 2020 24:00:00 GMT", MIDNIGHT),
        (
            "Fri, 31 Dec 1999 23:59:60 GMT",
            datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC),
        ),
        # ISO 8601 and W3CDTF
        ("2020-01-11T10:00:00Z", TEN),
        ("2020-01-11T12:00:00+02:00", TEN),
        ("2020-01-11T12:00:00+0200", TEN),
        ("2020-01-11 12:00:00 +0200", TEN),
        ("2020-01-11T10:00", TEN),
        ("2020-01-11T10:00:00.000Z", TEN),
        ("2020-1-11 10:00", TEN),
        ("2020/01/11 10:00:00", TEN),
        ("20200111T100000Z", TEN),
        ("20200111100000", TEN),
        ("2020-01-10T24:00:00Z", MIDNIGHT),
        ("2020-01-11", MIDNIGHT),
        ("20200111", MIDNIGHT),
        ("2020-01", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020", datetime(2020, 1, 1, tzinfo=UTC)),
        # asctime
        ("Sat Jan 11 10:00:00 2020", TEN),
        ("Sat Jan 11 05:00:00 EST 2020", TEN),
        # what people and programs write
        ("January 11, 2020 10:00 am", TEN),
        ("Jan 11, 2020 at 10:00 AM", TEN),
        ("1/11/2020 10:00:00 AM", TEN),
        ("1/11/2020 12:00:00 AM", MIDNIGHT),
        ("11.1.2020 10:00", TEN),
        ("1578736800", TEN),
        ("1578736800000", TEN),
        ("sam., 11 janv. 2020 10:00:00 GMT", TEN),
        ("Sa, 11 Okt 2020 10:00:00 GMT", TEN.replace(month=10)),
        ("11 juillet 2020", MIDNIGHT.replace(month=7)),
        ("11 juin 2020", MIDNIGHT.replace(month=6)),
        ("11 de enero de 2020", MIDNIGHT),
        ("2020. január 11. 10:00", TEN),
        ("2020-január-11 10:00", TEN),
        ("Fri, 2020/01/11 05:00:00 EST", TEN),
        ("2020年1月11日 10:00", TEN),
        ("2020年01月11日(土) 10:00:00", TEN),
        ("2020年1月11日", MIDNIGHT),
        ("2020년 01월 11일  10:00:00", TEN),
        ("Sat, 11 Jan 2020 06:00:00 AT", TEN),
        ("Mon, \u0660\u0661 Jan 2020 10:00:00 GMT", TEN.replace(day=1)),
        ("2020-01-11Z", MIDNIGHT),
        ("2020-01-11+02:00", MIDNIGHT - timedelta(hours=2)),
        ("Sat, 11 Jan 2020 EST", MIDNIGHT + timedelta(hours=5)),
        ("2020-01-11 10.00", TEN),
        ("2020-01-11T10:00:00+00:00Z", TEN),
        ("Sat, 11 Jan 2020 10:00:00:000 GMT", TEN),
        ("Sat, 11 Jan 2020 15:30:00 +05.30", TEN),
        ("Sat, 11 Jan 2020 05:00:00 --0500", TEN),
        ("Sat 11 Jan 10:00:00 GMT 2020", TEN),
        ("Sat Jan 11 2020 11:00:00 GMT+0100 (CET)", TEN),
        ("11/Jan/2020:10:00:00 +0000", TEN),
        # words around
        ("1st January 2020", MIDNIGHT.replace(day=1)),
        ("the 11th of January, 2020", MIDNIGHT),
        ("January 3rd, 2020", MIDNIGHT.replace(day=3)),
        ("1er janvier 2020", MIDNIGHT.replace(day=1)),
        ("11 janvier 2020 à 10h00", TEN),
        ("Publié le 11 janvier 2020 à 10h", TEN),
        ("11. Januar 2020 um 10:00 Uhr", TEN),
        ("11 de enero del 2020 a las 10:00", TEN),
        ("11 d'abril de 2020", MIDNIGHT.replace(month=4)),
        ("11. januar 2020 kl. 10.00", TEN),
        ("сб, 11 янв. 2020 г. 10:00", TEN),  # noqa: RUF001
        ("11 Ocak 2020 Cumartesi", MIDNIGHT),
        ("2020 m. sausio 11 d.", MIDNIGHT),
        ("الأحد، 11 يناير 2020", MIDNIGHT),
        ("11 בינואר 2020 10:00", TEN),
        ("segunda-feira, 11 de janeiro de 2020 10:00", TEN),
        # in another order, or less of it
        ("10:00 11 Jan 2020", TEN),
        ("10:00, 11 January 2020 (UTC)", TEN),
        ("05:00 EST, January 11, 2020", TEN),
        ("10:00 AM 2020-01-11", TEN),
        ("Jan 11, 2020 10am", TEN),
        ("11.01.2020 10 a. m.", TEN),
        ("Sat, 01/11/2020 - 10:00", TEN),
        ("31/01/2020", MIDNIGHT.replace(day=31)),
        ("1/11/20", MIDNIGHT),
        ("11.01.20", MIDNIGHT),
        ("11-01-20 10:00", TEN),
        ("January 2020", MIDNIGHT.replace(day=1)),
        ("Jan-Feb 2020", MIDNIGHT.replace(day=1)),
        ("2020 Jan", MIDNIGHT.replace(day=1)),
        ("01/2020", MIDNIGHT.replace(day=1)),
        # with the half of the day first, and months that are numbers
        ("2020-01-11 오전 10:00:00", TEN),
        ("2020/1/10 下午 10:00:00", TEN - timedelta(hours=12)),
        ("2020年1月11日 午前10時00分", TEN),
        ("2020. 1. 11. 오전 10:00", TEN),
        ("2020/01/11(土) 10:00", TEN),
        ("土, 11 1月 2020 19:00:00 +0900", TEN),
        ("星期六, 11 一月 2020 10:00:00", TEN),
        # digits
        ("202001111000", TEN),
        ("200111", MIDNIGHT),
        ("202010", MIDNIGHT.replace(month=10, day=1)),
        ("1578736800.5", TEN),
        ("/Date(1578736800000+0100)/", TEN),
        ("2020-011", MIDNIGHT),
        ("2020011", MIDNIGHT),
        ("20011", MIDNIGHT),
        ("-20-01", MIDNIGHT.replace(day=1)),
        ("-20-01-11", MIDNIGHT),
        # days and hours that there are not
        ("Thu, 31 Jun 2004 19:48:21 GMT", datetime(2004, 7, 1, 19, 48, 21, tzinfo=UTC)),
        ("2020-01-10T25:00:00Z", MIDNIGHT + timedelta(hours=1)),
        ("2020-01-11T09:60:00Z", TEN),
        # passed on as they stand
        ("Thu, 01 Jan 1970 00:00:00 GMT", datetime(1970, 1, 1, tzinfo=UTC)),
        ("2099-01-11T10:00:00Z", TEN.replace(year=2099)),
    ],
)
def test_a_date_is_read_in_all_common_forms(written: str, expected: datetime) -> None:
    assert parse_date(written) == expected


MONTHS = {
    "be": "студзеня лютага сакавіка красавіка мая чэрвеня ліпеня жніўня верасня "
    "кастрычніка лістапада снежня",
    "bg": "януари февруари март април май юни юли август септември октомври ноември "
    "декември",
    "ca": "gener febrer març abril maig juny juliol agost setembre octubre novembre "
    "desembre",
    "de-at": "Jänner Feber März April Mai Juni Juli August September Oktober November "
    "Dezember",
    "et": "jaanuar veebruar märts aprill mai juuni juuli august september oktoober "
    "november detsember",
    "is": "janúar febrúar mars apríl maí júní júlí ágúst september október nóvember "
    "desember",
    "lt": "sausio vasario kovo balandžio gegužės birželio liepos rugpjūčio rugsėjo "
    "spalio lapkričio gruodžio",
    "lv": "janvāris februāris marts aprīlis maijs jūnijs jūlijs augusts septembris "
    "oktobris novembris decembris",
    "sl": "januar februar marec april maj junij julij avgust september oktober "
    "november december",
    "ms": "Januari Februari Mac April Mei Jun Julai Ogos September Oktober November "
    "Disember",
    "cs": "ledna února března dubna května června července srpna září října listopadu "
    "prosince",
    "da": "januar februar marts april maj juni juli august september oktober november "
    "december",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November "
    "Dezember",
    "el": "Ιαν Φεβ Μάρ Απρ Μάι Ιούν Ιούλ Αύγ Σεπ Οκτ Νοέ Δεκ",  # noqa: RUF001
    "en": "January February March April May June July August September October "
    "November December",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre "
    "noviembre diciembre",
    "fi": "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta "
    "heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre "
    "décembre",
    "hu": "január február március április május június július augusztus szeptember "
    "október november december",
    "id": "Januari Februari Maret April Mei Juni Juli Agustus September Oktober "
    "November Desember",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre "
    "novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober "
    "november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września "
    "października listopada grudnia",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro "
    "novembro dezembro",
    "ro": "ianuarie februarie martie aprilie mai iunie iulie august septembrie "
    "octombrie noiembrie decembrie",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября "
    "декабря",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",  # noqa: RUF001
    "uk": "січня лютого березня квітня травня червня липня серпня вересня жовтня "
    "листопада грудня",
}


@pytest.mark.parametrize("language", MONTHS)
def test_months_are_read_in_the_languages_of_feeds(language: str) -> None:
    for month, name in enumerate(MONTHS[language].split(), start=1):
        expected = TEN.replace(month=month)
        assert parse_date(f"11 {name} 2020 10:00:00 GMT") == expected, name
        assert parse_date(f"11. {name.upper()} 2020 10:00") == expected, name


@pytest.mark.parametrize(
    "written",
    [
        None,
        "",
        " ",
        "yesterday",
        "0000-00-00 00:00:00",
        "11 Foo 2020",
        "2020-01-11T30:00:00Z",
        "2020-01-11T10:62:00Z",
        "32 January 2020",
        "2020-13-13",
        "2020-367",
        "2020-000",
        "Wed, 30 Nov -0001 00:00:00 +0000",
        "2019-2020",
        "Winter 2020",
        "0001-01-01T00:00:00+02:00",
        "9999-12-31T24:00:00Z",
        "Sat, 11 Jan 2020 10:00:00 +9900",
        "123",
        "20201399",
        "²²²²",
        "99999999999999999999",
        "2020-01-11T10:00:00Z" + "0" * LONGEST,
    ],
)
def test_what_is_no_date_is_none(written: str | None) -> None:
    assert parse_date(written) is None


@given(
    st.datetimes(
        min_value=datetime(1950, 1, 1),  # noqa: DTZ001 (hypothesis wants it naive)
        max_value=datetime(2200, 1, 1),  # noqa: DTZ001 (hypothesis wants it naive)
        timezones=st.integers(-12 * 60, 14 * 60).map(
            lambda minutes: timezone(timedelta(minutes=minutes))
        ),
    )
)
def test_what_programs_write_is_what_is_read(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)
    assert parse_date(format_datetime(moment)) == moment
    assert parse_date(moment.isoformat()) == moment


@given(st.text())
def test_any_text_is_a_date_or_none(text: str) -> None:
    moment = parse_date(text)
    assert moment is None or moment.tzinfo == UTC


@pytest.mark.parametrize("zone", ["GMT", "Z", "+0000", "+0530", "-0800", "EST", "+05"])
@pytest.mark.parametrize("day", ["Sat, 11", "Fri, 31", "Son, 01", "Sat, 00"])
@pytest.mark.parametrize("time", ["10:00:00", "24:00:00", "10:61:00", "1:00:000"])
def test_what_is_read_quickly_is_read_as_all_other_dates(
    day: str, time: str, zone: str
) -> None:
    thorough = f"{day}  april 2020 {time} {zone}"
    assert parse_date(f"{day} Apr 2020 {time} {zone}") == parse_date(thorough)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("11 มกราคม 2563 10:00", TEN),
        ("ส., 11 ม.ค. 2563 17:00:00 +0700", TEN),
        ("วันเสาร์ที่ 11 มกราคม พ.ศ. 2563 เวลา 10:00 น.", TEN),
        ("11 มกราคม 2020", MIDNIGHT),
        ("๑๑ มกราคม ๒๕๖๓", MIDNIGHT),
        ("11 जनवरी 2020 10:00", TEN),
        ("शनिवार, 11 जनवरी 2020 15:30:00 +0530", TEN),
        ("शनि, 11 जन. 2020", MIDNIGHT),
        ("११ फ़रवरी २०२०", MIDNIGHT.replace(month=2)),
        ("11 tháng 1, 2020 10:00", TEN),
        ("Thứ Bảy, 11 Tháng Một 2020 17:00:00 +0700", TEN),
        ("Thứ Bảy, ngày 11 tháng 01 năm 2020", MIDNIGHT),
        ("11 Tháng Mười Một, 2020", MIDNIGHT.replace(month=11)),
        ("11 tháng năm 2020", MIDNIGHT.replace(month=5)),
        ("Tháng Một 11, 2020 10:00 SA", TEN),
        ("11 thg 1, 2020", MIDNIGHT),
        ("11 Tháng Mười Hai 2020 10:00 CH", TEN.replace(month=12, hour=22)),
    ],
)
def test_months_are_read_where_they_are_no_words(
    written: str, expected: datetime
) -> None:
    for form in ("NFC", "NFD"):
        assert parse_date(unicodedata.normalize(form, written)) == expected
