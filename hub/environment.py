"""Reading the settings, once, from the environment and the options of ``serve``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

from hub.config import SETTINGS, Settings
from hub.config_fields import PREFIX, Setting
from hub.config_openfeeder import ANALYTICS_NEEDS

NOT_SETTINGS = frozenset({"FANFARE_FAILPOINT"})
"""Variables with our prefix that only tests use."""


_LONGEST_REASON = 500
_PASSWORD = re.compile(r"(?<=://)[^\s/]*@")


class SettingError(Exception):
    """A setting has a value that cannot be used; names it and what was expected."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


def load_settings(
    environ: Mapping[str, str], options: Mapping[str, str | None] | None = None
) -> Settings:
    """Read all settings; an option wins over the environment.

    Raises `SettingError` for the first value that cannot be used.
    """
    values: dict[str, object] = {}
    for each in SETTINGS:
        source, raw = _raw_value(each, environ, options or {})
        if raw is None:
            continue
        try:
            values[each.field] = each.read(raw)
        except ValueError as error:
            shown = "" if each.is_secret else f", not {raw!r}"
            reason = _without_passwords(f"{error}{shown}")
            raise SettingError(source, reason[:_LONGEST_REASON]) from None
    settings = Settings(**values)  # type: ignore[arg-type]  # each came from its reader
    _check_together(settings)
    return settings


def _raw_value(
    each: Setting, environ: Mapping[str, str], options: Mapping[str, str | None]
) -> tuple[str, str | None]:
    """Where a setting's value comes from, and the value; None means the default."""
    option = options.get(each.field)
    if option is not None:
        return each.option, option
    if each.is_secret and (path := environ.get(f"{each.variable}_FILE")):
        return f"{each.variable}_FILE", _secret_from(f"{each.variable}_FILE", path)
    return each.variable, environ.get(each.variable) or None


def _without_passwords(reason: str) -> str:
    """A URL is often given where none is taken, of another database for one."""
    return _PASSWORD.sub("…@", reason)


def _secret_from(name: str, path: str) -> str:
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(name, f"cannot read {path}: {error}") from None
    if not secret:
        raise SettingError(name, f"expected a secret in {path}, which is empty")
    return secret


def _check_together(settings: Settings) -> None:
    """Refuse pairs of values that contradict each other."""
    ordered = (
        ("min_period", "max_period"),
        ("log_retention_seconds", "log_limit_seconds"),
        ("log_retention_count", "log_limit_count"),
    )
    for low, high in ordered:
        if getattr(settings, low) > getattr(settings, high):
            name = PREFIX + low.upper()
            raise SettingError(name, f"expected no more than {PREFIX}{high.upper()}")
    needed = ANALYTICS_NEEDS.get(settings.openfeeder_analytics, ())
    for field in needed:
        if not getattr(settings, field):
            name, chosen = PREFIX + field.upper(), settings.openfeeder_analytics
            raise SettingError(name, f"expected a value, for analytics by {chosen}")


def unknown_variables(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Variables with our prefix that are no setting, each with the likely one."""
    known = {each.variable for each in SETTINGS}
    known |= {f"{each.variable}_FILE" for each in SETTINGS if each.is_secret}
    strange = sorted(
        name
        for name in environ
        if name.startswith(PREFIX) and name not in known | NOT_SETTINGS
    )
    return [(name, _likely(name, sorted(known))) for name in strange]


def _likely(name: str, known: list[str]) -> str:
    """The known variable that was probably meant, or ""."""
    short = [each.removeprefix(PREFIX) for each in known]
    found = difflib.get_close_matches(name.removeprefix(PREFIX), short, 1, 0.7)
    return PREFIX + found[0] if found else ""
