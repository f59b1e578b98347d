"""Replaces the optional extra that guesses languages, which tests do not need."""

from __future__ import annotations

from typing import Self

MODEL_FILE = "the model that comes with it"


class LanguageIdentifier:
    """Says that every text is German; the surer, the more often it has "und"."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @classmethod
    def from_model_file(cls, model_file: str, norm_probs: bool) -> Self:
        assert (model_file, norm_probs) == (MODEL_FILE, True)
        return cls()

    def classify(self, text: str) -> tuple[str, float]:
        self.asked.append(text)
        return "de", min(1.0, text.count("und") / 10)
