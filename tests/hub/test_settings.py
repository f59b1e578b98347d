from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from math import inf
from pathlib import Path

import pytest

from hub.core.schedule.poll_period import PollingRules
from hub.settings import (
    DEFAULT,
    SETTINGS,
    SettingError,
    Settings,
    describe_settings,
    load_settings,
    unknown_variables,
)


def test_nothing_set_gives_the_defaults() -> None:
    settings = load_settings({})
    assert replace(settings, database="", state_dir="") == Settings()


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, of which nothing is known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    return tmp_path


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ("", "/home/ann/.local/state/fanfare/fanfare.db"),
        ("state", "/home/ann/.local/state/fanfare/fanfare.db"),
        ("/var/state", "/var/state/fanfare/fanfare.db"),
    ],
)
@pytest.mark.usefixtures("somewhere")
def test_the_default_database_is_the_same_from_every_directory(
    state: str, path: str
) -> None:
    settings = load_settings({"XDG_STATE_HOME": state})
    assert settings.database == f"sqlite:{path}"


@pytest.mark.usefixtures("somewhere")
def test_a_path_may_begin_at_home() -> None:
    settings = load_settings({"FANFARE_DATABASE": "sqlite:~/fanfare.db"})
    assert settings.database == "sqlite:/home/ann/fanfare.db"


def test_but_in_a_directory_that_has_one_it_is_that(somewhere: Path) -> None:
    (somewhere / "data").mkdir()
    assert not load_settings({}).database.startswith("sqlite:data")
    (somewhere / "data" / "fanfare.db").touch()
    assert load_settings({}).database == "sqlite:data/fanfare.db"


def test_the_defaults_of_polling_are_those_of_the_rules() -> None:
    assert Settings().polling_rules == PollingRules()


def test_every_default_is_one_its_own_reader_takes() -> None:
    computed = {
        "database",
        "state_dir",
        "public_url",
        "admin_token",
        "contact",
        "openfeeder_name",
    }
    for each in SETTINGS:
        if each.shown_default != "none" and each.field not in computed:
            assert each.read(each.shown_default) == getattr(Settings(), each.field)


def test_the_environment_sets_and_an_option_wins() -> None:
    environ = {"FANFARE_PORT": "81", "FANFARE_HOST": "0.0.0.0"}
    settings = load_settings(environ, {"port": "82", "host": None})
    assert (settings.port, settings.host) == (82, "0.0.0.0")


def test_settings_are_told_with_what_gave_each_and_without_secrets(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    environ = {
        "FANFARE_PORT": "81",
        "FANFARE_HOST": "0.0.0.0",
        "FANFARE_ADMIN_TOKEN_FILE": str(token),
    }
    settings = load_settings(environ, {"port": "82"})

    told = {each.name: each for each in describe_settings(settings)}

    assert len(told) == len(SETTINGS)
    assert {
        name: (each.value, each.default, each.source)
        for name, each in told.items()
        if each.source != DEFAULT
    } == {
        "FANFARE_PORT": ("82", "8080", "--port"),
        "FANFARE_HOST": ("0.0.0.0", "127.0.0.1", "FANFARE_HOST"),
        "FANFARE_ADMIN_TOKEN": (
            "",
            "generated, in the file admin-token beside the database",
            "FANFARE_ADMIN_TOKEN_FILE",
        ),
    }
    assert told["FANFARE_ROBOTS"].value == "off"


@pytest.mark.parametrize(
    ("text", "days"), [("all", inf), ("", inf), ("0", 0), ("0.5", 0.5), ("7", 7)]
)
def test_a_search_covers_some_days_all_or_none(text: str, days: float) -> None:
    assert load_settings({"FANFARE_SEARCH_DAYS": text}).search_days == days


def test_an_empty_variable_is_the_same_as_none() -> None:
    assert load_settings({"FANFARE_PORT": ""}).port == 8080


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("FANFARE_PORT", "eighty", "a whole number from 0 to 65535, not 'eighty'"),
        ("FANFARE_PORT", "65536", "a whole number from 0 to 65535, not '65536'"),
        ("FANFARE_PORT", "-1", "a whole number from 0 to 65535, not '-1'"),
        ("FANFARE_MIN_PERIOD", "soon", "seconds, from 1 to 604800, not 'soon'"),
        ("FANFARE_MIN_PERIOD", "nan", "seconds, from 1 to 604800, not 'nan'"),
        ("FANFARE_SEARCH_DAYS", "-1", "days, from 0 to 3650, or all, not '-1'"),
        ("FANFARE_SEARCH_DAYS", "some", "days, from 0 to 3650, or all, not 'some'"),
        ("FANFARE_LOG_LEVEL", "loud", "one of debug, info, warning, error, not 'loud'"),
        (
            "FANFARE_DATABASE",
            "mysql://here",
            "sqlite:PATH or postgresql://HOST/DATABASE, not",
        ),
        ("FANFARE_DATABASE", "sqlite:", "sqlite:PATH or postgresql:"),
        ("FANFARE_DATABASE", "sqlite::memory:", "sqlite:PATH, the path of a file, not"),
        ("FANFARE_DATABASE", "sqlite:///:memory:", "sqlite:PATH, the path of a file"),
        ("FANFARE_DATABASE", "sqlite:file::memory:", "sqlite:PATH, the path of a file"),
        ("FANFARE_PUBLIC_URL", "hub.example", "an http or https URL without query"),
        ("FANFARE_PUBLIC_URL", "http://a:b", "an http or https URL without query"),
        ("FANFARE_PUBLIC_URL", "http://hub.example/?a", "an http or https URL without"),
        ("FANFARE_PUBLIC_URL", "http://a:b@hub.example", "an http or https URL"),
        ("FANFARE_PUBLIC_URL", "http://hub.example/\n", "a URL in ASCII, its host as"),
        ("FANFARE_PUBLIC_URL", "http://h\u00fcb.example", "a URL in ASCII, its host"),
        ("FANFARE_PUBLIC_URL", "http://hub.example/>;a", "a URL in ASCII, its host as"),
        ("FANFARE_PUBLIC_URL", "http://hub,example", "a URL in ASCII, its host as"),
        ("FANFARE_PUBLIC_URL", "http://", "a URL in ASCII, its host as"),
        ("FANFARE_PORN_WORDS", "x" * 9_000, "the path of a file that can be read"),
        ("FANFARE_BLOCKED_HOSTS", "https://a.example", "names of hosts such as"),
        ("FANFARE_ALLOW_NETWORKS", "10.0.0.1/8", "networks like 10.0.0.0/8,::1/128"),
        ("FANFARE_CONTACT", "a\nb", "printable ASCII on one line"),
    ],
)
def test_a_bad_value_is_refused_naming_setting_and_expectation(
    variable: str, value: str, expected: str
) -> None:
    with pytest.raises(SettingError) as caught:
        load_settings({variable: value})
    assert str(caught.value).startswith(f"{variable}: expected {expected}")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FANFARE_DATABASE", "postgres+x://ann:hunter-two@db.example/fanfare"),
        ("FANFARE_DATABASE", "mysql://ann:hunter-two@@db.example/fanfare"),
        ("FANFARE_PUBLIC_URL", "https://ann:hunter-two@hub.example"),
        ("FANFARE_ALLOW_NETWORKS", "http://ann:hunter-two@10.0.0.1"),
    ],
)
def test_the_password_in_a_refused_url_is_not_repeated(
    variable: str, value: str
) -> None:
    with pytest.raises(SettingError, match=variable) as caught:
        load_settings({variable: value})
    assert "hunter-two" not in str(caught.value)


def test_a_value_without_end_is_not_repeated_whole() -> None:
    with pytest.raises(SettingError) as caught:
        load_settings({"FANFARE_ALLOW_NETWORKS": "9" * 9_000})
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "url",
    ["http://[::1]:8080", "https://10.0.0.1/hub", "https://xn--hb-xka.example/a%20b"],
)
def test_the_public_url_may_have_an_address_a_port_and_a_path(url: str) -> None:
    assert load_settings({"FANFARE_PUBLIC_URL": url}).public_url == url


def test_a_bad_option_is_refused_by_its_own_name() -> None:
    with pytest.raises(SettingError, match=r"^--log-level: expected one of"):
        load_settings({}, {"log_level": "loud"})


@pytest.mark.parametrize("language", ["", "english", "EN", "zh-Hans"])
def test_the_language_of_pages_is_one_that_all_readers_take(language: str) -> None:
    with pytest.raises(SettingError, match="expected a language such as en or de-CH"):
        load_settings({}, {"scp_language": language})
    assert load_settings({"FANFARE_SCP_LANGUAGE": "de-CH"}).scp_language == "de-CH"


@pytest.mark.parametrize("separator", [",", " ", ", "])
def test_networks_are_separated_by_commas_or_spaces(separator: str) -> None:
    value = separator.join(("127.0.0.0/8", "::1/128"))
    settings = load_settings({"FANFARE_ALLOW_NETWORKS": value})
    assert settings.allow_networks == (ip_network("127.0.0.0/8"), ip_network("::1/128"))


def test_blocked_hosts_are_names_separated_by_commas_or_spaces() -> None:
    value = "A.test, xn--bcher-kva.test"
    settings = load_settings({"FANFARE_BLOCKED_HOSTS": value})
    assert settings.blocked_hosts == ("a.test", "xn--bcher-kva.test")


def test_the_public_url_loses_its_slash() -> None:
    settings = load_settings({"FANFARE_PUBLIC_URL": "https://hub.example/fanfare/"})
    assert settings.public_url == "https://hub.example/fanfare"


def test_a_secret_can_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("s3cret\n")
    assert (
        load_settings({"FANFARE_ADMIN_TOKEN_FILE": str(path)}).admin_token == "s3cret"
    )


def test_a_secret_file_must_exist_and_hold_something(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(SettingError, match="which is empty"):
        load_settings({"FANFARE_ADMIN_TOKEN_FILE": str(empty)})
    with pytest.raises(SettingError, match="FANFARE_ADMIN_TOKEN_FILE: cannot read"):
        load_settings({"FANFARE_ADMIN_TOKEN_FILE": str(tmp_path / "missing")})


def test_a_word_list_must_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.touch()
    assert load_settings({"FANFARE_PORN_WORDS": str(path)}).porn_words == str(path)
    with pytest.raises(SettingError, match="expected the path of a file"):
        load_settings({"FANFARE_PORN_WORDS": str(tmp_path)})


def test_a_bad_secret_is_not_shown() -> None:
    with pytest.raises(SettingError) as caught:
        load_settings({"FANFARE_ADMIN_TOKEN": "geheim\u00e4"})
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (("FANFARE_MIN_PERIOD", "100"), ("FANFARE_MAX_PERIOD", "10")),
        (("FANFARE_LOG_RETENTION_COUNT", "9000"), ("FANFARE_LOG_LIMIT_COUNT", "8000")),
        (
            ("FANFARE_LOG_RETENTION_SECONDS", "900"),
            ("FANFARE_LOG_LIMIT_SECONDS", "800"),
        ),
    ],
)
def test_limits_that_contradict_each_other_are_refused(
    low: tuple[str, str], high: tuple[str, str]
) -> None:
    with pytest.raises(
        SettingError, match=f"{low[0]}: expected no more than {high[0]}"
    ):
        load_settings(dict([low, high]))


def test_retention_and_path_are_made_from_the_settings() -> None:
    settings = load_settings(
        {"FANFARE_DATABASE": "sqlite:/srv/hub.db", "FANFARE_LOG_LIMIT_COUNT": "1000000"}
    )
    assert settings.local_path == Path("/srv/hub.db")
    assert settings.retention.hard_count == 1_000_000


def test_on_a_server_what_belongs_to_this_machine_lies_in_a_directory() -> None:
    settings = load_settings(
        {
            "FANFARE_DATABASE": "postgres://ann:hunter-two@db.example/hub?sslmode=x",
            "XDG_STATE_HOME": "/var/state",
        }
    )

    assert settings.database_name == "postgresql://ann@db.example/hub"
    assert settings.local_path == Path("/var/state/fanfare/postgresql/fanfare")
    assert settings.byte_limits is None
    assert load_settings({"FANFARE_STATE_DIR": "/srv"}).state_dir == "/srv"


def test_a_password_is_in_no_report() -> None:
    url = "postgresql://ann:hunter-two@db.example/hub?password=hunter-two&sslmode=x"

    report = describe_settings(load_settings({"FANFARE_DATABASE": url}))[0]

    assert report.value == "postgresql://…@db.example/hub?password=…&sslmode=x"


def test_a_misspelt_variable_is_found_with_the_likely_one() -> None:
    environ = {
        "FANFARE_DATABSE": "x",
        "FANFARE_PORT": "1",
        "FANFARE_ZZZ": "",
        "HOME": "",
    }
    assert unknown_variables(environ) == [
        ("FANFARE_DATABSE", "FANFARE_DATABASE"),
        ("FANFARE_ZZZ", ""),
    ]


def test_variables_of_tests_are_not_misspelt() -> None:
    assert unknown_variables({"FANFARE_FAILPOINT": "x"}) == []
