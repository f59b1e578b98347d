"""Entries as they come, over a websocket, from where it left off.

    pip install websockets
    HUB=https://hub.example TOPIC=… python websocket_client.py

The package `fanfare_client` does the same in three lines: docs/how-to/python-client.md.
"""

import json
import os
import time
from pathlib import Path
from urllib.parse import urlencode

from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect

HUB, TOPIC = os.environ["HUB"], os.environ["TOPIC"]
CURSOR = Path(os.environ.get("CURSOR", "cursor"))


def work(item: dict) -> None:
    """What your program does with one entry. After a crash it may get one twice."""
    print("entry", item["id"], item.get("title", ""), flush=True)


def follow() -> None:
    """Over one connection, until it is lost."""
    query = {"topic": TOPIC}
    if CURSOR.exists():
        query["cursor"] = CURSOR.read_text()
    url = f"ws{HUB.removeprefix('http')}/stream?{urlencode(query)}"
    # The hub says something every 25 s; pings notice a connection that is dead.
    with connect(url, max_size=None, open_timeout=30) as connection:
        for text in connection:
            message = json.loads(text)
            if message["type"] == "error":
                raise SystemExit(message["reason"])
            if message["type"] == "reset":
                print("gap: records are no longer kept", flush=True)
            if message["type"] == "notification":
                for item in reversed(message["body"].get("items", [])):
                    work(item)
            if "cursor" in message:  # done with everything up to there
                temporary = CURSOR.with_suffix(".new")
                temporary.write_text(message["cursor"])
                temporary.replace(CURSOR)


while True:
    try:
        follow()
    except InvalidStatus as error:
        if error.response.status_code not in (429, 503):
            raise SystemExit(f"{HUB}: {error.response.body!r}") from error
    except (OSError, WebSocketException) as error:
        print("connection lost:", error, flush=True)
    time.sleep(2)
