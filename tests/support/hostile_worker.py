"""A parse worker that does what its document says: hang, spin, die, eat memory …"""

from __future__ import annotations

import os
import time
from pathlib import Path

from hub.ingest.parse_worker import serve
from hub.ingest.worker_frames import Task
from protocols.model import Feed, FeedFormat, ParsedFeed


def read(task: Task) -> ParsedFeed:
    order, _, argument = task.body.decode().strip().partition(" ")
    title = f"{order} by {os.getpid()}"
    match order:
        case "hang":
            Path(argument).touch()
            time.sleep(3600)
        case "spin":
            while True:
                pass
        case "die":
            os._exit(1)
        case "eat":
            title = str(len(bytearray(8 << 30)))
        case "fail":
            raise KeyError(argument)
        case "print":
            print("noise on standard output")
            os.write(1, b"more noise\n")
        case "environment":
            title = " ".join(sorted(os.environ))
    return ParsedFeed(format=FeedFormat.RSS, feed=Feed(title=title))


if __name__ == "__main__":
    serve(read)
