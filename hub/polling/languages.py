"""Languages guessed for entries that do not say theirs, if the extra is installed.

It is done after entries were compared and before they are stored, like their cleaning,
so that it makes no updates; and always beside the event loop.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Protocol

import structlog

from hub.core.language import believed, telling_text
from hub.runtime.offloading import run_in_thread
from protocols.model import Entry
from protocols.quick import changed
from storage.records import FetchCommit

EXTRA = "py3langid.langid"
"""The module behind ``pip install 'fanfare-hub[language]'``."""

log = structlog.get_logger()


class Detector(Protocol):
    """Guesses languages. Used by one thread at a time."""

    def classify(self, text: str) -> tuple[str, float]:
        """The likeliest language, as a code, and how likely it is, 0 to 1."""
        ...


def load_detector(module: str = EXTRA) -> Detector | None:
    """The one of the extra; None if that is not installed. Takes a second or two."""
    try:
        extra = importlib.import_module(module)
    except ImportError:
        return None
    detector: Detector = extra.LanguageIdentifier.from_model_file(
        extra.MODEL_FILE, norm_probs=True
    )
    log.info("language_detector_loaded", module=module)
    return detector


async def name_languages(commit: FetchCommit, detector: Detector) -> FetchCommit:
    """The commit with a language for entries whose feed does not say it either."""
    if not commit.entries or (commit.head and commit.head.language):
        return commit
    naming = partial(_named, commit.entries, detector)
    return changed(commit, entries=await run_in_thread(naming))


def _named(entries: tuple[Entry, ...], detector: Detector) -> tuple[Entry, ...]:
    return tuple(_name(each, detector) for each in entries)


def _name(entry: Entry, detector: Detector) -> Entry:
    text = "" if entry.language else telling_text(entry)
    language = believed(*detector.classify(text)) if text else ""
    return changed(entry, language=language) if language else entry
