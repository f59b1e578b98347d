"""Entries as they come, as server-sent events, from where it left off. Nothing but the
standard library.

    HUB=https://hub.example TOPIC=… python event_stream_client.py
"""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

HUB, TOPIC = os.environ["HUB"], os.environ["TOPIC"]
CURSOR = Path(os.environ.get("CURSOR", "cursor"))


def work(item: dict) -> None:
    """What your program does with one entry. After a crash it may get one twice."""
    print("entry", item["id"], item.get("title", ""), flush=True)


def events(lines) -> Iterator[dict[str, str]]:
    """Of each block of lines its fields: event, data, id; a comment's name is ""."""
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\r\n")
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        else:
            yield fields
            fields = {}


def follow() -> None:
    """Over one connection, until it is lost."""
    headers = {"Accept": "text/event-stream"}
    if CURSOR.exists():
        headers["Last-Event-ID"] = CURSOR.read_text()
    url = f"{HUB}/stream?{urllib.parse.urlencode({'topic': TOPIC})}"
    request = urllib.request.Request(url, headers=headers)
    # The hub says something every 25 s.
    with urllib.request.urlopen(request, timeout=60) as answer:
        for event in events(answer):
            if event.get("event") == "reset":
                print("gap: records are no longer kept", flush=True)
            if event.get("event") == "notification":
                body = json.loads(event["data"])["body"]
                for item in reversed(body.get("items", [])):
                    work(item)
            if "id" in event:  # done with everything up to there
                temporary = CURSOR.with_suffix(".new")
                temporary.write_text(event["id"])
                temporary.replace(CURSOR)


while True:
    try:
        follow()
    except urllib.error.HTTPError as error:
        if error.code not in (429, 503):
            raise SystemExit(f"{HUB}: {error.read().decode()}") from error
    except OSError as error:
        print("connection lost:", error, flush=True)
    time.sleep(2)
