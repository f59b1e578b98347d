"""The settings of how long the log of records is."""

from __future__ import annotations

from dataclasses import dataclass

from hub.config_fields import setting
from hub.config_readers import DAY, seconds, whole
from storage.records import Retention


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """Retention is a soft limit, for which late subscribers are waited; the other is
    not."""

    log_retention_seconds: float = setting(
        30 * DAY,
        seconds(60, 3_650 * DAY),
        "age at which log records go, unless a late subscriber still needs them",
        shown="2592000",
    )
    log_retention_count: int = setting(
        1_000_000,
        whole(100, 1_000_000_000),
        "records kept, more only while a late subscriber needs them",
    )
    log_limit_seconds: float = setting(
        60 * DAY,
        seconds(60, 3_650 * DAY),
        "age at which log records go whoever still needs them",
        shown="5184000",
    )
    log_limit_count: int = setting(
        2_000_000,
        whole(100, 1_000_000_000),
        "records kept whoever needs more",
    )

    @property
    def retention(self) -> Retention:
        return Retention(
            soft_age=self.log_retention_seconds,
            soft_count=self.log_retention_count,
            hard_age=self.log_limit_seconds,
            hard_count=self.log_limit_count,
        )
