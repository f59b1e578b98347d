"""A network whose callbacks all answer alike: with a status, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from hub.http import Answer, Purpose, Request


@dataclass
class Callbacks:
    """``answer``: a status, or what is raised. Only 127.0.0.1 is not paced."""

    answer: int | Exception = 200
    requests: list[Request] = field(default_factory=list)

    async def send(self, request: Request) -> Answer:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Answer(
            url=request.url,
            status=self.answer,
            headers={},
            body=b"",
            complete=True,
            milliseconds=1,
        )

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return host == "127.0.0.1"
