from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from hub.cli.subscription_commands import OVER_LEFT_OUT
from tests.support.fake_api import FakeApi, feed_document, subscription_document

Fanfare = Callable[..., Result]
ADD = "POST /api/subscriptions"
HOOK = "https://you.example/hook"
URL = "https://example.org/feed.xml"


def test_subscribing_sends_what_was_asked_for(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[ADD] = (201, subscription_document())
    result = fanfare(
        *("subs", "add", HOOK, URL, "--secret", "s", "--format", "atom"),
        *("--updates", "--batch"),
    )
    assert f"subscribed  {HOOK}  (subscription 4)\n  to {URL}" in result.stdout
    assert "): it is new\n  to poll it now: fanfare feeds fetch 7\n" in result.stdout
    assert api.requests == [
        (
            ADD,
            {
                "callback": HOOK,
                "topic": URL,
                "secret": "s",
                "format": "atom",
                "updates": "all",
                "batch": True,
            },
        )
    ]


def test_who_subscribes_again_is_told_what_stays(
    fanfare: Fanfare, api: FakeApi
) -> None:
    health = {"state": "paused", "since": "2026-01-01T12:00:00Z", "reason": ""}
    document = subscription_document(added=False, health=health)
    api.answers[ADD] = (200, document)
    stdout = fanfare("subs", "add", HOOK, URL).stdout
    assert stdout.startswith(f"subscribed already, and updated  {HOOK}")
    assert "paused: nothing is sent until `fanfare subs resume 4`" in stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_one_that_is_over_is_subscribed_again(
    fanfare: Fanfare, api: FakeApi, options: tuple[str, ...]
) -> None:
    document = subscription_document()
    api.answers["POST /api/subscriptions/4/resubscribe"] = (200, document)
    stdout = fanfare("subs", "resubscribe", "4", *options).stdout
    assert json.loads(stdout) == document if options else "subscribed" in stdout


def test_an_error_of_the_feed_is_told(fanfare: Fanfare, api: FakeApi) -> None:
    document = subscription_document(feed_status=feed_document(error="timed out"))
    api.answers[ADD] = (201, document)
    result = fanfare("subs", "add", HOOK, URL)
    assert result.exit_code == 0
    assert "timed out" in result.stderr


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (
            (),
            [
                "no subscriptions; add one with `fanfare subs add CALLBACK TOPIC`",
                OVER_LEFT_OUT,
            ],
        ),
        (("--search", "hook"), [f"no subscriptions match; {OVER_LEFT_OUT}"]),
        (("--failing",), ["no subscriptions match"]),
        (("--state", "over"), ["no subscriptions match"]),
    ],
)
def test_an_empty_list_says_whether_those_that_are_over_are_left_out(
    fanfare: Fanfare, api: FakeApi, options: tuple[str, ...], lines: list[str]
) -> None:
    nothing = {"subscriptions": [], "cursor": None, "next": None, "total": 0}
    api.answers["GET /api/subscriptions"] = (200, nothing)
    assert fanfare("subs", "list", *options).stdout.splitlines() == lines


def test_the_list_is_a_table_or_json(fanfare: Fanfare, api: FakeApi) -> None:
    common = {"since": "2026-01-01T12:00:00Z", "last_milliseconds": 12_300}
    failing = {**common, "state": "failing", "reason": "a 500"}
    slow = {**common, "state": "slow", "reason": ""}
    found = [subscription_document(health=each) for each in (failing, slow)]
    page = {"subscriptions": found, "next": None}
    api.answers["GET /api/subscriptions"] = (200, page)
    _, *rows = fanfare("subs", "list", "--topic", URL).stdout.splitlines()
    cells = [re.split("  +", row) for row in rows]
    assert cells[0][:2] == ["4", "failing"]
    assert cells[0][3:] == ["json", "a 500", HOOK, URL]
    assert cells[1][4] == "its last request took 12.3 s"
    assert json.loads(fanfare("subs", "list", "--json").stdout)[0]["id"] == 4


def test_an_empty_list_says_what_to_do(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/subscriptions"] = (200, {"subscriptions": [], "next": None})
    assert "fanfare subs add" in fanfare("subs", "list").stdout


def test_show_has_the_last_attempts(fanfare: Fanfare, api: FakeApi) -> None:
    attempts = [
        {
            "at": "2026-01-01T12:00:00Z",
            "position": 9,
            "status": 0,
            "milliseconds": 20_000,
            "error": "no answer within 20 s",
            "id": 12,
            "failed_at": "tls",
            "answer": None,
            "answer_withheld": False,
        }
    ]
    document = subscription_document(attempts=attempts, has_secret=False)
    api.answers["GET /api/subscriptions/4"] = (200, document)
    lines = fanfare("subs", "show", "4").stdout
    assert "signed        no secret" in lines
    assert "9       -       20000  no answer within 20 s" in lines
    assert "failed  negotiating TLS" in lines
    assert "fanfare deliveries show 12" in lines
    assert json.loads(fanfare("subs", "show", "4", "--json").stdout) == document


def test_attempts_are_listed_with_what_each_told_of(
    fanfare: Fanfare, api: FakeApi
) -> None:
    common = {"at": "2026-01-01T12:00:00Z", "milliseconds": 20}
    taken = {"position": 9, "status": 204, "error": "", "title": "News", "entries": 1}
    several = {**taken, "position": 8, "entries": 3}
    failure = {"position": 7, "status": 0, "error": "lost", "title": "", "entries": 0}
    path = "GET /api/subscriptions/4/attempts"
    found = [{**common, **each} for each in (taken, several, failure)]
    api.answers[path] = (200, {"attempts": found, "next": None})
    lines = fanfare("subs", "attempts", "4", "--since", "2h").stdout
    assert "9       204     20  News\n" in lines
    assert "News and 2 more" in lines
    assert "7       -       20  lost" in lines
    none = {"attempts": [], "next": None, "kept_from": None}
    api.answers[path] = (200, none)
    assert fanfare("subs", "attempts", "4", "--failed").stdout == "no attempts\n"
    api.answers[path] = (200, {**none, "kept_from": "2026-01-01T12:00:00Z"})
    said = fanfare("subs", "attempts", "4", "--until", "2026-01-01").stdout
    assert "no failures or catch-ups from before 2026-01-01 12:00:00Z" in said


NEWS = {"id": 34, "title": "News"}


@pytest.mark.parametrize(
    ("told", "total", "said"),
    [
        ([NEWS], 1, ["News (entry 34)"]),
        ([NEWS], 3, ["News (entry 34)", "2 more not shown, deleted or hidden since"]),
        ([], 3, ["3 not shown, deleted or hidden since"]),
        ([], 0, ["no entry that its callback is sent"]),
        (
            [],
            None,
            ["not known: the log no longer has it, or it may not be read any more"],
        ),
    ],
)
def test_the_entries_of_a_record_are_named_with_its_requests(
    fanfare: Fanfare,
    api: FakeApi,
    told: list[dict[str, object]],
    total: int | None,
    said: list[str],
) -> None:
    named = {"told": told, "told_total": total}
    page = {"attempts": [], "next": None, "kept_from": None, **named}
    api.answers["GET /api/subscriptions/4/attempts"] = (200, page)
    lines = fanfare("subs", "attempts", "4", "--record", "9").stdout.splitlines()
    assert lines == [*(f"told of  {each}" for each in said), "no attempts"]
    [(asked, _)] = api.requests
    assert "record=9" in asked
    shown = json.loads(
        fanfare("subs", "attempts", "4", "--record", "9", "--json").stdout
    )
    assert shown == {"attempts": [], **named}


@pytest.mark.parametrize(
    ("given", "body"),
    [
        (("--since", "2h"), {"since": "2h"}),
        (("--record", "7"), {"record": 7}),
    ],
)
def test_a_replay_says_how_much_is_sent_again(
    fanfare: Fanfare, api: FakeApi, given: tuple[str, ...], body: dict[str, object]
) -> None:
    lag = {"records": 2, "has_more": False, "seconds": 60.0}
    api.answers["POST /api/subscriptions/4/replay"] = (202, lag)
    assert "sending again: 2 records" in fanfare("subs", "replay", "4", *given).stdout
    assert api.requests[-1][1] == body
    assert fanfare("subs", "replay", "4").exit_code == 2


@pytest.mark.parametrize(("secret", "shown"), [("whsec_x", "whsec_x\n"), ("", "")])
def test_a_new_secret_is_all_that_goes_to_stdout(
    fanfare: Fanfare, api: FakeApi, secret: str, shown: str
) -> None:
    until = "2126-01-01T00:00:00Z"
    document = subscription_document(former_secret_until=until, secret=secret)
    api.answers["POST /api/subscriptions/4/secret"] = (200, document)
    result = fanfare("subs", "rotate-secret", "4")
    assert result.stdout == shown
    assert "the former one signs as well until 2126" in result.stderr


def test_a_request_is_printed_as_curl(fanfare: Fanfare, api: FakeApi) -> None:
    curl = "curl -X POST https://you.example/"
    api.answers["GET /api/subscriptions/4/request"] = (200, {"curl": curl})
    assert fanfare("subs", "request", "4").stdout == f"{curl}\n"


def test_one_whose_secret_was_changed_says_how_long_the_former_signs(
    fanfare: Fanfare, api: FakeApi
) -> None:
    until = "2126-01-01T00:00:00Z"
    document = subscription_document(former_secret_until=until)
    api.answers["GET /api/subscriptions/4"] = (200, document)
    lines = fanfare("subs", "show", "4").stdout
    assert "former secret  signs as well until 2126-01-01 00:00:00Z" in lines


def test_one_of_a_client_of_old_says_which_header_has_which_signature(
    fanfare: Fanfare, api: FakeApi
) -> None:
    document = subscription_document(algorithm="sha1+sha256")
    api.answers["GET /api/subscriptions/4"] = (200, document)
    signed = "signed        sha1 for older clients; sha256 in X-Hub-Signature-256"
    assert signed in fanfare("subs", "show", "4").stdout


def test_show_says_how_it_is_what_is_done_and_what_may_be_done(
    fanfare: Fanfare, api: FakeApi
) -> None:
    since = "2026-01-01T12:00:00Z"
    dead = {"id": 3, "first": 5, "last": 9, "at": since, "reason": "answered 500"}
    known = {"entries": 1, "titles": ["News"], "has_more": False}
    document = subscription_document(
        health={"state": "failing", "since": since, "reason": "answered 500"},
        explanation="3 tries failed; a request is under way",
        advice=["test its callback: fanfare subs test 4"],
        lag={"records": 4, "has_more": False, "seconds": 300.0},
        dead_letters=[
            {**dead, "entries": None},
            {**dead, **known, "id": 4, "first": 9},
        ],
        lease_end="2126-01-01T12:00:00Z",
    )
    api.answers["GET /api/subscriptions/4"] = (200, document)
    shown = fanfare("subs", "show", "4").stdout
    assert re.search(r"state +failing since 2026-01-01 .*: answered 500\n", shown)
    assert re.search(r"delivery +3 tries failed; a request is under way\n", shown)
    assert re.search(r"lag +4 records, the oldest found 5 min ago\n", shown)
    assert re.search(r"given up +records 5 to 9, 2026.*\(dead letter 3\)\n", shown)
    assert re.search(
        r"given up +record 9, 2026.*; 1 entry: News \(dead letter 4\)\n", shown
    )
    assert re.search(r"lease +2126-01-01 12:00:00Z", shown)
    assert "\nto test its callback: fanfare subs test 4\n\nno attempts yet" in shown


@pytest.mark.parametrize(
    ("lag", "said"),
    [
        ({"records": 0, "has_more": False, "seconds": 0.0}, "none"),
        (
            {"records": 1, "has_more": False, "seconds": 2.0},
            "1 record, the oldest found 2 s ago",
        ),
        (
            {"records": 10_000, "has_more": True, "seconds": 86_400.0},
            "at least 10000 records, the oldest found 1 d ago",
        ),
    ],
)
def test_the_lag_is_in_records_and_time(
    fanfare: Fanfare, api: FakeApi, lag: dict[str, object], said: str
) -> None:
    api.answers["GET /api/subscriptions/4"] = (200, subscription_document(lag=lag))
    assert re.search(rf"\nlag +{said}\n", fanfare("subs", "show", "4").stdout)


def trial_document(**changes: object) -> dict[str, object]:
    request = {
        "method": "POST",
        "url": HOOK,
        "headers": [{"name": "Fanfare-Test", "value": "true"}],
        "body": "{}",
        "size": 2,
        "is_same": True,
    }
    answer = {
        "status_line": "HTTP/1.1 200 Fine",
        "headers": [],
        "body": "thanks",
        "is_excerpt": False,
    }
    document: dict[str, object] = {
        "delivered": True,
        "subscription": 4,
        "topic": URL,
        "callback": HOOK,
        "status": 200,
        "milliseconds": 31,
        "error": "",
        "failed_at": None,
        "answer": answer,
        "answer_withheld": False,
        "request": request,
    }
    return {**document, **changes}


def test_a_test_delivery_shows_what_was_sent_and_answered(
    fanfare: Fanfare, api: FakeApi
) -> None:
    document = trial_document()
    api.answers["POST /api/subscriptions/4/test"] = (200, document)
    result = fanfare("subs", "test", "4")
    assert result.exit_code == 0
    assert "    Fanfare-Test: true\n\n    {}\n" in result.stdout
    assert f"delivered  {HOOK}\nafter      31 ms\n" in result.stdout
    assert "answer     HTTP/1.1 200 Fine\n\n    thanks\n" in result.stdout
    assert json.loads(fanfare("subs", "test", "4", "--json").stdout) == document


def test_a_test_delivery_that_is_not_taken_is_exit_code_1(
    fanfare: Fanfare, api: FakeApi
) -> None:
    failed = {"delivered": False, "status": 0, "answer": None}
    document = trial_document(**failed, error="timed out", failed_at="connect")
    api.answers["POST /api/deliveries/test"] = (200, document)
    named = ("--callback", HOOK, "--topic", URL, "--secret", "s")
    result = fanfare("subs", "test", *named)
    assert result.exit_code == 1
    assert "failed  connecting" in result.stdout
    assert result.stderr == "fanfare: the callback did not accept it: timed out\n"
    body = {"callback": HOOK, "topic": URL, "secret": "s", "format": "json"}
    assert api.requests == [("POST /api/deliveries/test", body)]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--callback", HOOK),
        ("--topic", URL),
        ("4", "--callback", HOOK, "--topic", URL),
        ("4", "--secret", "s"),
    ],
)
def test_a_test_delivery_goes_to_a_subscription_or_a_callback(
    fanfare: Fanfare, options: tuple[str, ...]
) -> None:
    assert fanfare("subs", "test", *options).exit_code == 2


def test_removing_ends_it(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["DELETE /api/subscriptions/4"] = (200, subscription_document())
    assert fanfare("subs", "remove", "4").stdout == f"ended  {HOOK}\n"


LIST, ADD = "GET /api/subscriptions", "POST /api/subscriptions"


NOBODY = {"subscriptions": [], "next": None}


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    api.answers[LIST] = (200, NOBODY)
    document = subscription_document(feed_status=feed_document())
    api.answers[ADD] = (201, document)
    return api


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "subscriptions.csv"
    path.write_text(f"topic,callback,format,secret\n{URL},{HOOK},atom,x\n")
    return path


def bodies(api: FakeApi) -> list[object]:
    return [body for request, body in api.requests if request == ADD]


def test_each_subscription_of_a_file_is_made_for_the_account(
    fanfare: Fanfare, api: FakeApi, file: Path
) -> None:
    result = fanfare("subs", "import", str(file), "--account", "alice")
    assert result.exit_code == 0
    assert result.stdout == "1 subscribed\n"
    assert bodies(api) == [
        {
            "account": "alice",
            "topic": URL,
            "callback": HOOK,
            "format": "atom",
            "secret": "x",
            "algorithm": "sha1+sha256",
        }
    ]


def test_a_saved_list_leaves_format_and_secret_to_the_hub_and_the_option(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    entry = {"format": None, "endpoint": HOOK, "secret": None, "feed": {"url": URL}}
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"subscription": entry}]))
    fanfare("subs", "import", str(path), "--secret", "for all")
    [body] = bodies(api)
    assert isinstance(body, dict)
    assert (body["format"], body["secret"]) == ("by-topic", "for all")


def test_what_a_file_leaves_open_is_taken_from_the_options(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"topic,callback\n{URL},{HOOK}\n")
    options = ("--format", "json", "--signature", "sha256")
    fanfare("subs", "import", str(path), *options)
    [body] = bodies(api)
    assert isinstance(body, dict)
    assert (body["format"], body["algorithm"]) == ("json", "sha256")


def test_a_dry_run_changes_nothing(fanfare: Fanfare, api: FakeApi, file: Path) -> None:
    result = fanfare("subs", "import", str(file), "--dry-run")
    assert result.stdout == "1 would be subscribed\n"
    assert bodies(api) == []


def test_what_is_there_already_stays_as_it_is(
    fanfare: Fanfare, api: FakeApi, file: Path
) -> None:
    api.answers[LIST] = (
        200,
        {"subscriptions": [subscription_document()], "next": None},
    )
    result = fanfare("subs", "import", str(file))
    assert result.stdout == "1 already there\n"
    assert bodies(api) == []


def test_what_has_ended_is_subscribed_again(
    fanfare: Fanfare, api: FakeApi, file: Path
) -> None:
    ended = subscription_document(state="ended")
    api.answers[LIST] = (200, {"subscriptions": [ended], "next": None})
    assert fanfare("subs", "import", str(file)).stdout == "1 subscribed\n"


def test_failures_are_told_with_their_place_and_the_others_are_made(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    path = tmp_path / "many.csv"
    path.write_text(f"{URL},{HOOK}\n{URL},mailto:a@b\n{URL},\n{URL},{HOOK}\n")
    result = fanfare("subs", "import", str(path))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"failed  line 2: {URL} to mailto:a@b: callback: expected an absolute http or"
        " https URL, not 'mailto:a@b'",
        f"failed  line 3: {URL} to : callback: expected a URL",
        "1 subscribed, 1 repeated in the file, 2 failed",
    ]
    assert len(bodies(api)) == 1


def test_what_the_hub_refuses_is_a_failure(
    fanfare: Fanfare, api: FakeApi, file: Path
) -> None:
    api.answers[ADD] = (422, {"detail": "callback: expected a URL outside this hub"})
    result = fanfare("subs", "import", str(file))
    assert result.exit_code == 1
    assert "failed  line 2" in result.stdout
    assert "outside this hub" in result.stdout


def test_feeds_in_error_are_named(fanfare: Fanfare, api: FakeApi, file: Path) -> None:
    feed = feed_document(error="HTTP 404")
    api.answers[ADD] = (201, subscription_document(feed_status=feed))
    result = fanfare("subs", "import", str(file))
    assert result.exit_code == 0
    assert f"in error  line 2: {URL}: HTTP 404" in result.stdout
    assert "1 of their feeds cannot be read now" in result.stdout


def test_the_report_is_json_on_demand(
    fanfare: Fanfare, api: FakeApi, file: Path
) -> None:
    report = json.loads(fanfare("subs", "import", str(file), "--json").stdout)
    assert report["counts"] == {"subscribed": 1}
    [each] = report["subscriptions"]
    assert (each["place"], each["topic"], each["outcome"]) == (
        "line 2",
        URL,
        "subscribed",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no subscriptions found in the files"),
        (b"a,b\n", "expected subscriptions as JSON, JSON Lines or CSV"),
        (b"\xff\xfe", "expected UTF-8"),
    ],
)
def test_what_is_no_such_file_is_refused(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)
    result = fanfare("subs", "import", str(path))
    assert result.exit_code == 1
    assert message in result.stderr


def test_an_unknown_account_is_told_before_anything_is_made(
    fanfare: Fanfare, api: FakeApi, file: Path
) -> None:
    api.answers[LIST] = (422, {"detail": "account: expected an account"})
    result = fanfare("subs", "import", str(file), "--account", "nobody")
    assert result.exit_code == 1
    assert "account: expected an account" in result.stderr
    assert bodies(api) == []


def test_edit_sends_what_is_to_change(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["PATCH /api/subscriptions/4"] = (200, subscription_document())
    options = ("--format", "atom", "--no-updates", "--batch", "--secret", "")
    result = fanfare("subs", "edit", "4", *options)
    assert result.exit_code == 0
    assert "edited  https://you.example/hook  (subscription 4)" in result.stdout
    sent = {"secret": "", "format": "atom", "updates": "fresh", "batch": True}
    assert api.requests == [("PATCH /api/subscriptions/4", sent)]
    assert fanfare("subs", "edit", "4").exit_code == 2


@pytest.mark.parametrize(("verb", "done"), [("pause", "paused"), ("resume", "resumed")])
def test_several_are_paused_and_resumed_by_id_or_callback(
    fanfare: Fanfare, api: FakeApi, verb: str, done: str
) -> None:
    of_it = [subscription_document(id=number) for number in (5, 6)]
    api.answers[LIST] = (200, {"subscriptions": of_it, "next": None})
    for number in (4, 5, 6):
        document = subscription_document(id=number)
        api.answers[f"POST /api/subscriptions/{number}/{verb}"] = (200, document)

    result = fanfare("subs", verb, "4", "-", input=b"# mine\nyou.example/hook\n")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == [
        f"{done}  {HOOK}  (subscription 4)",
        f"  to {URL}",
    ]
    assert f"{LIST}?limit=500&callback=https%3A%2F%2Fyou.example%2Fhook" in {
        request for request, _ in api.requests
    }
    shown = json.loads(fanfare("subs", verb, "4", HOOK, "--json").stdout)
    assert [each["id"] for each in shown] == [4, 5, 6]


def test_a_callback_is_tried_now(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["POST /api/deliveries/retry"] = (202, {"due": "now"})
    api.answers["GET /api/subscriptions/4"] = (200, subscription_document(id=4))
    result = fanfare("subs", "retry", "4")
    assert result.stdout.startswith(f"due  {HOOK}  (subscription 4)")
    assert ("POST /api/deliveries/retry", {"subscription": 4}) in api.requests
    shown = json.loads(fanfare("subs", "retry", "4", "--json").stdout)
    assert [each["id"] for each in shown] == [4]


def test_of_several_one_that_cannot_be_paused_keeps_none_from_it(
    fanfare: Fanfare, api: FakeApi
) -> None:
    ended = {"detail": "subscription 5 has ended; subscribe again"}
    api.answers["POST /api/subscriptions/5/pause"] = (409, ended)
    api.answers["POST /api/subscriptions/4/pause"] = (200, subscription_document())

    result = fanfare("subs", "pause", "5", "other.example/hook", "4")

    assert result.exit_code == 1
    assert "paused" in result.stdout
    assert "subscription 5 has ended" in result.stderr
    assert "no subscription of https://other.example/hook" in result.stderr
    assert result.stderr.endswith("fanfare: 2 of 3 subscriptions failed\n")
    alone = fanfare("subs", "pause", "5")
    assert alone.stderr == "fanfare: subscription 5 has ended; subscribe again\n"
