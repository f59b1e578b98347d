"""``fanfare parse --explain``: an explanation on the terminal, or as JSON."""

from __future__ import annotations

import orjson

from hub.cli import say
from hub.cli.parsing import Document
from hub.cli.wording import plural, print_facts, print_table, printable
from protocols.feeds.explaining import (
    Encoding,
    Explanation,
    explain,
    explain_encoding,
)


def print_explanation(document: Document, *, as_json: bool) -> None:
    """Of what is no feed, too: then the encoding is all that is known."""
    body, content_type = document.body, document.content_type
    if document.parsed is None:
        encoding = explain_encoding(body, content_type)
        if as_json:
            _print_json({"error": document.error, "encoding": encoding})
        else:
            print_facts(_encoding(encoding))
        return
    explanation = explain(body, content_type, document.parsed)
    if as_json:
        _print_json(explanation)
    else:
        _print(explanation)


def _print_json(value: object) -> None:
    say(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def _print(explanation: Explanation) -> None:
    left_out = explanation.left_out
    print_facts(
        [
            ("format", explanation.format),
            ("read by", explanation.path),
            *_encoding(explanation.encoding),
            ("entries", len(explanation.entries)),
            ("left out", plural(left_out, "entry", "entries") if left_out else ""),
        ]
    )
    for name, lines in (
        ("NOTES", explanation.problems),
        ("DROPPED", explanation.dropped),
    ):
        if lines:
            say(f"\n{name}")
        for line in lines:
            say(f"  {printable(line)}")
    if explanation.entries:
        say()
        print_table(
            ("KNOWN BY", "ID", "TITLE", "WHY"),
            [
                (each.rule, each.id[:60], each.title[:40], each.why)
                for each in explanation.entries
            ],
        )


def _encoding(encoding: Encoding) -> list[tuple[str, object]]:
    return [
        ("encoding", f"{encoding.name}, by {encoding.source}"),
        ("said", "; ".join(encoding.claims)),
        ("encoding trouble", encoding.problem),
    ]
