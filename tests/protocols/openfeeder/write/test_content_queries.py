from __future__ import annotations

import pytest

from protocols.openfeeder.write.content_queries import (
    LONGEST_QUERY,
    LONGEST_URL,
    OpenFeederError,
    read_request,
)


@pytest.mark.parametrize(("name", "most"), [("q", LONGEST_QUERY), ("url", LONGEST_URL)])
def test_a_parameter_that_is_too_long_is_refused_by_its_name(
    name: str, most: int
) -> None:
    read_request({name: "a" * most})
    with pytest.raises(OpenFeederError, match=f"{name}: expected up to {most} char"):
        read_request({name: "a" * (most + 1)})
