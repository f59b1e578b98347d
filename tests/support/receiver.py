"""Callbacks that remember what they got, and how much of it at once."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.support.http_server import Origin, ServerAnswer, ServerRequest


class Receiver(Origin):
    """Every path is a callback of its own, which wants what it is asked about and takes
    what it is told, unless `serve` says otherwise.

    ``keeps`` False only counts the requests.
    """

    def __init__(self, *, keeps: bool = True) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.open_requests: Counter[str] = Counter()
        self.most_open: Counter[str] = Counter()  # of each path at once
        self.most_open_in_all = 0
        self._keeps = keeps
        self._by_path: dict[str, list[ServerRequest]] = defaultdict(list)

    def to(self, path: str) -> list[ServerRequest]:
        """What that path got, in order."""
        return self._by_path[path]

    async def until_count(
        self, path: str, count: int, *, seconds: float = 60.0
    ) -> None:
        await self.until(lambda: self.counts[path] >= count, seconds=seconds)

    def _take(self, request: ServerRequest) -> None:
        path = request.path
        self.counts[path] += 1
        self.open_requests[path] += 1
        self.most_open[path] = max(self.most_open[path], self.open_requests[path])
        in_all = self.open_requests.total()
        self.most_open_in_all = max(self.most_open_in_all, in_all)
        if self._keeps:
            super()._take(request)
            self._by_path[path].append(request)

    def _ended(self, request: ServerRequest) -> None:
        self.open_requests[request.path] -= 1

    def _unscripted(self, request: ServerRequest) -> ServerAnswer:
        challenge = request.query.get("hub.challenge", "")
        return ServerAnswer(body=challenge.encode())
