"""``/admin/settings``: the hub's settings, and where each value is from.

Settings are read once, when the hub starts; none is changed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.settings import DEFAULT, SettingReport
from hub.web.admin.page_access import OperatorPages, PageAccess, viewer_of
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page


class SettingPages(OperatorPages):
    def __init__(
        self, access: PageAccess, settings: Sequence[SettingReport], clock: Clock
    ) -> None:
        super().__init__(access)
        self._settings = settings
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/settings",
        id="get_settings_page",
        summary="The settings, by words and by whether they were given",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        search = request.query_params.get("search", "").strip()
        only_given = request.query_params.get("given") == "yes"
        return render_page(
            "settings.html",
            section="Settings",
            viewer=viewer_of(request),
            now=self._clock.now(),
            rows=[
                each
                for each in self._settings
                if _mentions(each, search) and (not only_given or _is_given(each))
            ],
            given=sum(map(_is_given, self._settings)),
            total=len(self._settings),
            search=search,
            only_given=only_given,
        )


def _is_given(setting: SettingReport) -> bool:
    return setting.source != DEFAULT


def _mentions(setting: SettingReport, search: str) -> bool:
    """Whether all words of a search are in its name, value or help."""
    text = f"{setting.name} {setting.option} {setting.value} {setting.help}".lower()
    return all(word in text for word in search.lower().split())
