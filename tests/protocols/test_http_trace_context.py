"""W3C Trace Context, 3.2 and 4.3: the header ``traceparent``."""

import pytest

from protocols.http import TraceParent, format_traceparent, read_traceparent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@pytest.mark.parametrize("is_sampled", [True, False])
def test_what_is_written_is_read(is_sampled: bool) -> None:
    parent = TraceParent(int(TRACE, 16), int(SPAN, 16), is_sampled)

    value = format_traceparent(parent)

    assert value == f"00-{TRACE}-{SPAN}-0{int(is_sampled)}"
    assert read_traceparent(value) == parent


def test_of_a_later_version_the_first_fields_are_read() -> None:
    read = read_traceparent(f"cc-{TRACE}-{SPAN}-03-what-comes-later")

    assert read == TraceParent(int(TRACE, 16), int(SPAN, 16), True)


@pytest.mark.parametrize(
    "value",
    [
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_not_valid_is_ignored(value: str) -> None:
    assert read_traceparent(value) is None
