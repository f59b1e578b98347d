"""The hub over time on its pages: plots, the flight of entries, and their entries."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hub.services.committed_entries import MOST_RANKED, MOST_RECORDS
from hub.services.hub_series import SeriesRange
from hub.web.admin.hub_picture import PLOTS, RangePicture, default_range
from storage.records import RecordKind, SeriesSample
from tests.support.operator_browser import HOSTILE, OperatorBrowser, read, text_of
from tests.support.services import Hub
from tests.support.storage_scene import Scene, fetch, record

RANGES = pytest.mark.parametrize("back", [*SeriesRange])


async def be_busy(hub: Hub, seconds: int = 40) -> None:
    await hub.services.series.look()
    for number in range(seconds):
        hub.metrics.entries.add("entries", number % 7)
        hub.metrics.publications.observe(10.0 * number)
        hub.metrics.freshness.undated += 2
        hub.metrics.first_deliveries.observe(0.02)
        hub.clock.advance(1)
        hub.services.series.measure()


@RANGES
async def test_what_moves_in_a_picture_is_as_if_it_was_drawn_anew(
    hub: Hub, back: SeriesRange
) -> None:
    series = hub.services.series
    await series.load()
    moving = RangePicture(series, back)
    for seconds in (30, 1, 1, 3, 200):
        await be_busy(hub, seconds)
        moved, anew = moving.draw(), RangePicture(series, back).draw()
        assert (moved.panels, moved.plots) == (anew.panels, anew.plots)
        assert moved.plot_numbers.rows[:-1] == anew.plot_numbers.rows[:-1]
        assert moved.flight_numbers.rows[:-1] == anew.flight_numbers.rows[:-1]


@RANGES
async def test_a_new_hub_has_plots_with_nothing_in_them(
    browser: OperatorBrowser, back: SeriesRange
) -> None:
    answer = await browser.open(f"/admin?range={back}")
    assert answer.status_code == 200
    page = read(answer)
    assert len(page.xpath("//section[starts-with(@id, 'plot-')]")) == len(PLOTS) + 2
    assert page.xpath("//*[@class='line l1'][@d != 'M0,4h22']") == []
    assert "No new entry with a believable date was committed" in text_of(answer)
    assert "No callback was sent a new entry" in text_of(answer)


async def test_each_plot_has_a_title_a_description_and_its_numbers_in_a_table(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await be_busy(hub)
    page = read(await browser.open("/admin?range=10min"))
    for svg in page.xpath("//svg[@role='group']"):
        ids = svg.get("aria-labelledby"), svg.get("aria-describedby")
        told = [page.xpath(f"string(//*[@id='{each}'])") for each in ids]
        assert all(told)
    columns = page.xpath("//*[@id='plot-numbers']//th[@scope='col']/text()")
    for kind in PLOTS:
        assert {f"{kind.title}: {each}" for each in kind.names.values()} <= {*columns}
    row = page.xpath("//*[@id='flight-numbers']//tr[td='40']")[0]
    assert [each.text for each in row.xpath("td")] == [
        *("40", "5 min", "10 min"),
        *("40", "25 ms", "25 ms"),
    ]
    panels = [
        " ".join(page.xpath(f"string(//*[@id='plot-{each}'])").split())
        for each in ("publication-to-commit", "commit-to-delivery")
    ]
    told = "40 entries: half within 5 min, 99 % within 10 min; in the slowest column"
    told += " 99 % within 10 min. Without a believable date: about 80 more."
    assert told in panels[0]
    assert "believable" not in panels[1]
    table = page.xpath("string(//*[@aria-label='How late entries are'])")
    assert "80 more had no believable date" in table


async def test_a_click_leads_to_the_entries_of_that_time(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    for text in HOSTILE:
        await scene.publish(feed, text, when=hub.clock.now() + timedelta(seconds=3))
    await be_busy(hub)
    page = read(await browser.open("/admin?range=10min"))
    links = page.xpath("//section[@id='plot-commit-to-delivery']//svg//a/@href")
    assert len(set(links)) == len(links) == 4
    listed = read(await browser.open(links[0]))
    assert listed.xpath("//tbody/tr/th/a/text()") == HOSTILE[::-1]
    assert listed.xpath("//section[starts-with(@id, 'plot-')]") == []
    listed = read(await browser.open(links[1]))
    assert listed.xpath("//tbody/tr/th/a/text()") == []
    ends = listed.xpath("//input[@type='datetime-local']")
    assert [(each.get("value")[-8:], each.get("step")) for each in ends] == [
        ("00:00:10", "1"),
        ("00:00:20", "1"),
    ]
    late = page.xpath("//section[@id='plot-publication-to-commit']//svg//a/@href")
    assert late
    assert all(each.endswith("&order=delay") for each in late)


async def test_the_page_stays_small_however_much_there_was(
    hub: Hub, browser: OperatorBrowser
) -> None:
    series = hub.services.series
    now = hub.clock.now()
    for number in reversed(range(80)):
        at = now - timedelta(seconds=now.timestamp() % 300, minutes=5 * number)
        rough = float(number * 7_919 % 613)
        sample = SeriesSample(
            at=at,
            values={name: (rough, rough * 3) for kind in PLOTS for name in kind.names},
            delays={
                name: tuple((number * bin) % 97 for bin in range(18))
                for name in ("publication_to_commit", "commit_to_delivery")
            },
        )
        await hub.storage.series.add(sample, now - timedelta(days=30))
    await series.load()
    await be_busy(hub)
    answer = await browser.open("/admin?range=6h")
    assert len(answer.content) <= 100_000


async def test_the_range_is_in_the_address(browser: OperatorBrowser) -> None:
    answer = await browser.open("/admin?range=30d")
    current = read(answer).xpath("//a[@aria-current][contains(@href, 'range')]/@href")
    assert current == ["/admin?range=30d"]
    assert (await browser.open("/admin?range=1y")).status_code == 422
    assert default_range(60) is SeriesRange.MINUTES
    assert default_range(7_200) is SeriesRange.HOURS


@pytest.mark.parametrize("query", ["since=0001-01-01", "until=9999-12-31"])
async def test_a_time_as_far_as_dates_go_has_links_to_those_beside_it(
    browser: OperatorBrowser, query: str
) -> None:
    page = read(await browser.open(f"/admin/entries?{query}"))
    links = page.xpath("//p[@class='ranges']/a/@href")
    assert links
    for link in links:
        assert (await browser.open(link)).status_code == 200


async def test_a_longer_time_is_drawn_and_listed_page_by_page(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.publish(feed, *map(str, range(60)), when=hub.clock.now())
    await be_busy(hub)
    page = read(await browser.open("/admin/entries?since=1h"))
    assert len(page.xpath("//section[starts-with(@id, 'plot-')]")) == 2
    assert len(page.xpath("//section[@aria-labelledby='entries']//tbody/tr")) == 50
    first = page.xpath("//section[@aria-labelledby='entries']//tbody//th/a/text()")[0]
    assert first == "59"
    (next,) = page.xpath("//p[@class='pages']/a/@href")
    page = read(await browser.open(next))
    assert len(page.xpath("//section[@aria-labelledby='entries']//tbody/tr")) == 10


async def test_a_time_without_entries_says_so(browser: OperatorBrowser) -> None:
    answer = await browser.open("/admin/entries")
    assert "No entry was committed in this time." in text_of(answer)
    assert (await browser.open("/admin/entries?since=soon")).status_code == 422


@pytest.mark.parametrize(
    ("delay", "said"),
    [
        (
            50.0,
            "As the hub counted them, all other new entries with a believable date"
            " came within 1 min of it.",
        ),
        (1e6, "Others may have come as late: choose a shorter time."),
    ],
)
async def test_of_very_many_entries_the_latest_are_told_with_what_is_known_of_others(
    hub: Hub, browser: OperatorBrowser, delay: float, said: str
) -> None:
    await hub.services.series.load()
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    hub.clock.advance(1)
    keys = [f"{number}" for number in range(MOST_RANKED + 1)]
    await scene.publish(feed, *keys, when=hub.clock.now())
    hub.clock.advance(1)
    hub.metrics.publications.observe(delay)

    told = text_of(await browser.open("/admin/entries?since=10min&order=delay"))

    assert f"Of 500 entries of the times with the longest delays. {said}" in told


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("order=delay", "None among these."),
        ("", "None so far: the next page reads on where this one stopped."),
        ("feed=1", "No entry like that was committed in this time."),
    ],
)
async def test_entries_that_were_not_looked_at_are_not_said_to_be_none(
    hub: Hub, browser: OperatorBrowser, query: str, said: str
) -> None:
    scene = Scene(hub.storage)
    await scene.add_feed()
    busy, now = await scene.add_feed("busy"), hub.clock.now()
    of_none = (record(kind=RecordKind.ERROR),) * (6 * MOST_RECORDS)
    await hub.storage.log.commit(fetch(busy, when=now, records=of_none))
    text = text_of(await browser.open(f"/admin/entries?{query}"))
    assert said in text
    assert "No entry was committed" not in text


async def test_starts_of_the_hub_are_marked_and_named(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await hub.services.series.load()
    await be_busy(hub)
    page = read(await browser.open("/admin?range=10min"))
    assert len(page.xpath("//path[@class='start']")) == len(PLOTS) + 2
    assert page.xpath("//*[@id='plot-numbers']//th[span='started']")
    [told] = page.xpath("//p[contains(., 'the hub was started once at')]")
    assert told.xpath("time/@datetime") == [
        (hub.clock.now() - timedelta(seconds=40)).replace(microsecond=0).isoformat()
    ]
