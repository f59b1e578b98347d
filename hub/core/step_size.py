"""How much work one step takes on, so that nothing else waits long for its end."""

from __future__ import annotations

import msgspec


class StepSize(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` of whatever is done by the next step, which is to take ``seconds``."""

    count: int
    most: int
    seconds: float

    def after(self, done: int, took: float) -> StepSize:
        """The size of the next step, after one that did so much in so many seconds.

        A step that had less to do than it might have done does not show how much fits.
        """
        count = self.count
        if took > self.seconds:
            count = max(1, int(count * self.seconds / took))
        elif took < self.seconds / 2 and done >= count:
            count = min(self.most, count * 2)
        return msgspec.structs.replace(self, count=count)
