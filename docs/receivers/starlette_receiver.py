"""A receiver for a hub's notifications, with Starlette.

    pip install starlette uvicorn
    SECRET=… TOPIC=… uvicorn starlette_receiver:app --port 9000

Put your own code into `work`. What the rest does, and why: docs/how-to/receivers.md
"""

import base64
import fcntl
import hmac
import json
import os
import re
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

SECRET = os.environ["SECRET"]  # of the subscription
TOPIC = os.environ["TOPIC"]  # what is subscribed to
HUB = os.environ.get("HUB", "")  # its URL; without it nothing is asked of the hub
TOKEN = os.environ.get("TOKEN", "")  # of the account, with the scope retrieve
FOLDER = Path(os.environ.get("FOLDER", "received"))
INBOX, DONE, LAST = FOLDER / "inbox", FOLDER / "done", FOLDER / "last"
for folder in (INBOX, DONE):
    folder.mkdir(parents=True, exist_ok=True)


def work(item: dict) -> None:
    """What your program does with one entry. It may get one twice: keep it by its id,
    so that the second time changes nothing."""
    print("entry", item["id"], item.get("title", ""), flush=True)


def confirm(query) -> tuple[int, str]:
    """The hub asks whether this subscription is meant, or says that it has ended."""
    if query.get("hub.topic") != TOPIC:
        return 404, "not subscribed to this topic"
    if query.get("hub.mode") == "denied":
        print("ended:", query.get("hub.reason", ""), flush=True)
    return 200, query.get("hub.challenge", "")


def take(headers, body: bytes) -> tuple[int, str]:
    """Keep a notification, once, and answer; the worker does the rest."""
    id = headers.get("webhook-id", "")
    if not is_genuine(headers, body, SECRET) or not re.fullmatch(r"[\w-]+", id):
        return 403, "the signature is wrong"
    if not (DONE / id).exists():
        missed = headers.get("fanfare-missed", "")
        write(INBOX / id, missed.encode() + b"\n" + body)
    return 204, ""


def is_genuine(headers, body: bytes, secret: str) -> bool:
    """headers: by names in lower case; body: the bytes as they came."""
    id = headers.get("webhook-id", "")
    at = headers.get("webhook-timestamp", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:
        return False
    is_base64 = secret.startswith("whsec_")
    key = base64.b64decode(secret[6:]) if is_base64 else secret.encode()
    digest = hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256")
    expected = b"v1," + base64.b64encode(digest)
    given = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(each, expected) for each in given)


def write(path: Path, content: bytes) -> None:
    """All of it or nothing, and on the disk before the hub is answered."""
    with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)


def work_forever() -> None:
    """One worker at a time, however many processes take notifications."""
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = LAST.read_text() if HUB and LAST.exists() else ""
        time.sleep(0.2)  # until this program listens
        while True:
            before = resume(before)
            try:
                for path in sorted(INBOX.iterdir(), key=position_of):
                    work_on(path)
            except Exception as error:  # it stays in the inbox, and so its order
                print("tried again in 5 s:", repr(error), flush=True)
                time.sleep(5)
            time.sleep(5 if before else 0.2)


def resume(before: str) -> str:
    """Ask for what came after the last notification that was here at the start; "" once
    that is done. The hub remembers what was not taken; this is for what was taken and
    lost with a disk."""
    if before:
        _, position, subscription = before.split("-")
        body = json.dumps({"record": int(position) + 1}).encode()
        try:
            ask(f"/api/subscriptions/{subscription}/replay", body)
        except OSError as error:
            print("could not resume, tried again in 5 s:", error, flush=True)
            return before
    return ""


def work_on(path: Path) -> None:
    missed, _, body = path.read_bytes().partition(b"\n")
    last = LAST.read_text() if LAST.exists() else path.name
    is_of_log = position_of(path) > 0  # and not a test, for example
    is_other_epoch = is_of_log and path.name.split("-")[0] != last.split("-")[0]
    if missed or is_other_epoch:
        # The hub no longer had these records, or was restored from a backup.
        print("gap", missed.decode() or "a new epoch", flush=True)
        read_back()
    document = json.loads(body)
    if "items" not in document:
        print("the feed's status:", document["status"]["http"], flush=True)
    for item in reversed(document.get("items", [])):
        work(item)
    if is_other_epoch or position_of(path) >= position_of(Path(last)) > 0:
        write(LAST, path.name.encode())
    path.rename(DONE / path.name)


def position_of(path: Path) -> int:
    """Ids are EPOCH-POSITION-SUBSCRIPTION."""
    parts = path.name.split("-")
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else 0


def read_back() -> None:
    """The topic's newest entries, which are more than were missed, or all there are."""
    if HUB:
        query = {"hub.mode": "retrieve", "hub.topic": TOPIC, "count": 50}
        found = ask("/?" + urllib.parse.urlencode({**query, "format": "json"}))
        for item in reversed(found["items"]):
            work(item)


def ask(path: str, body: bytes | None = None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(HUB + path, body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


async def callback(request: Request) -> PlainTextResponse:
    if request.method == "POST":
        body = await request.body()
        status, text = await run_in_threadpool(take, request.headers, body)
    else:
        status, text = confirm(request.query_params)
    return PlainTextResponse(text, status)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    threading.Thread(target=work_forever, daemon=True).start()
    yield


app = Starlette(
    routes=[Route("/", callback, methods=["GET", "POST"])], lifespan=lifespan
)
