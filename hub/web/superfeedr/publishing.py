"""``hub.mode=publish``: open to everybody, as a ping only has topics looked at."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import Response

from hub.services import PublishingService, WebSubService
from hub.web.superfeedr.calls import Call, Mode, Modes
from protocols.errors import InvalidValue
from protocols.superfeedr.parameters import Parameters
from protocols.websub.requests import Form, PublishRequest, read_request

_TOPICS = ("hub.url", "hub.topic")


class Publishing:
    def __init__(self, websub: WebSubService, publishing: PublishingService) -> None:
        self._websub = websub
        self._publishing = publishing

    def modes(self) -> Modes:
        return {"publish": Mode(answer=self.publish, is_open=True)}

    async def publish(self, call: Call) -> Response:
        """204, whatever the topics: who pings learns nothing of what is here.

        With ``hub.content`` the topic is not fetched: that is its news.
        """
        given = call.parameters
        asked = _pinged(given)
        content = given.one("hub.content")
        if not content:
            await self._websub.publish(asked)
        elif len(asked.topics) + len(asked.refused) > 1:
            raise InvalidValue("hub.url", "the one topic that hub.content is of")
        else:
            await self._publishing.take(
                asked.topics[0], content.encode(), given.one("hub.signature")
            )
        return Response(status_code=HTTPStatus.NO_CONTENT)


def _pinged(given: Parameters) -> PublishRequest:
    named = [(name, value) for name in _TOPICS for value in given.all(name)]
    request = read_request(Form((("hub.mode", "publish"), *named)))
    assert isinstance(request, PublishRequest)  # noqa: S101 - its mode says so
    return request
