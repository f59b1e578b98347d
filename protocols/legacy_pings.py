"""Pings: XML-RPC, as blogs send it, and rssCloud.

XML-RPC calls come from anybody. So their documents may have no document type and hence
no entities, must be UTF-8 or a single-byte encoding, and are limited in size and
parameters; only scalar values are read, as text. Blogs have sent ``weblogUpdates.ping``
and ``weblogUpdates.extendedPing`` since 2001, and most blogging programs still can.
``ping`` has the blog's name and URL, sometimes that of a changed page and a category;
``extendedPing`` has the feed's URL after that of the page, but WordPress sends it in
the page's place. So the order is not relied on: each URL may be a feed's.

rssCloud: a feed's ``<cloud>`` tells registered aggregators that the feed has changed. A
registration lasts 25 hours. The content itself is not sent, nor is anything signed.
Only the protocols over HTTP POST are supported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from urllib.parse import urlencode, urlsplit

from lxml import etree

from protocols.protocol_errors import InvalidValue
from protocols.text import collapse
from protocols.websub.callbacks import read_web_url
from protocols.xml_syntax import SAFE

MOST_BYTES: Final = 16 * 1024
"""The size of a call."""
MOST_PARAMETERS: Final = 16
_LONGEST_NAME: Final = 100
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/]+")
"""The specification: "identifier characters, upper and lower-case A-Z, the numeric
characters, 0-9, underscore, dot, colon and slash"."""
_ENCODING: Final = re.compile(rb"""<\?xml[^>]{0,80}encoding=["']([\w.-]{1,40})["']""")
_CODECS: Final = {
    "utf-8": "utf-8",
    "us-ascii": "utf-8",
    "iso-8859-1": "cp1252",
    "windows-1252": "cp1252",
}
_DECLARATION: Final = re.compile(r"^\ufeff?\s*(?:<\?xml[^>]*\?>)?")
_SCALARS: Final = frozenset(
    {"string", "i4", "i8", "int", "boolean", "double", "dateTime.iso8601", "base64"}
)


Value = str | bool | int
"""The types of a struct's members when it is written."""


class FaultCode(IntEnum):
    """What went wrong, in the codes that XML-RPC servers have agreed on
    (xmlrpc-epi).
    """

    NOT_WELL_FORMED = -32700
    WRONG_ENCODING = -32701
    NO_CALL = -32600
    NO_SUCH_METHOD = -32601
    WRONG_PARAMETERS = -32602
    OUT_OF_ORDER = -32400


class Fault(Exception):
    """A call that is answered with a fault; the message is for people."""

    def __init__(self, code: FaultCode, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCall:
    """A method's name, and its parameters as text; "" for a parameter that is no
    scalar.
    """

    method: str
    parameters: tuple[str, ...] = ()


def read_call(body: bytes) -> MethodCall:
    """Read a call. Raises `Fault`."""
    if len(body) > MOST_BYTES:
        raise Fault(FaultCode.NO_CALL, f"a call has at most {MOST_BYTES} bytes")
    root = _tree(_text(body))
    if root.tag != "methodCall":
        raise Fault(FaultCode.NO_CALL, "expected a methodCall")
    name = (root.findtext("methodName") or "").strip()
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise Fault(FaultCode.NO_CALL, "expected the name of a method")
    values = root.findall("params/param/value")
    if len(values) > MOST_PARAMETERS:
        raise Fault(
            FaultCode.WRONG_PARAMETERS, f"expected at most {MOST_PARAMETERS} parameters"
        )
    return MethodCall(method=name, parameters=tuple(map(_scalar, values)))


def render_answer(members: Mapping[str, Value]) -> bytes:
    """An answer whose one value is a struct."""
    return _response(f"<params><param>{_struct(members)}</param></params>")


def render_fault(fault: Fault) -> bytes:
    """An answer with a fault.

    "A <struct> containing two elements, one named <faultCode>, an <int> and one named
    <faultString>, a <string>."
    """
    code: dict[str, Value] = {"faultCode": int(fault.code), "faultString": fault.reason}
    return _response(f"<fault>{_struct(code)}</fault>")


def _text(body: bytes) -> str:
    declared = _ENCODING.match(body.removeprefix(b"\xef\xbb\xbf").lstrip())
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    if name not in _CODECS:
        raise Fault(FaultCode.WRONG_ENCODING, f"expected one of {', '.join(_CODECS)}")
    text = body.decode(_CODECS[name], errors="replace")
    # Nothing can hide in another encoding: exactly this text is parsed.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise Fault(FaultCode.NO_CALL, "a call has no document type")
    return _DECLARATION.sub("", text, count=1)


def _tree(text: str) -> etree._Element:
    try:
        return etree.fromstring(text.encode(), etree.XMLParser(**SAFE))
    except etree.XMLSyntaxError as error:
        cause = collapse(error.msg or "").partition(", line ")[0]
        raise Fault(FaultCode.NOT_WELL_FORMED, f"not well-formed: {cause}") from None


def _scalar(value: etree._Element) -> str:
    """The value as text; "" if it is no scalar.

    "If no type is indicated, the type is string."
    """
    typed = next(iter(value), None)
    if typed is None:
        return (value.text or "").strip()
    return (typed.text or "").strip() if typed.tag in _SCALARS else ""


def _struct(members: Mapping[str, Value]) -> str:
    written = "".join(
        f"<member><name>{name}</name><value>{_value(value)}</value></member>"
        for name, value in members.items()
    )
    return f"<value><struct>{written}</struct></value>"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return f"<boolean>{int(value)}</boolean>"
    if isinstance(value, int):
        return f"<int>{value}</int>"
    return f"<string>{_escaped(value)}</string>"


def _escaped(text: str) -> str:
    """Escape a text. The specification requires "&" and "<" to be encoded."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _response(content: str) -> bytes:
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{head}\n<methodResponse>{content}</methodResponse>\n".encode()


METHODS: Final = ("weblogUpdates.ping", "weblogUpdates.extendedPing")
_LAST_URL: Final = 4
"""Parameters after the feed's URL are categories."""


def read_ping(call: MethodCall) -> tuple[str, ...]:
    """The URLs that a ping names, each once, the feed's first if there is one.

    Raises `Fault`.
    """
    if call.method not in METHODS:
        raise Fault(FaultCode.NO_SUCH_METHOD, f"expected {' or '.join(METHODS)}")
    if len(call.parameters) < 2:
        raise Fault(FaultCode.WRONG_PARAMETERS, "expected at least a name and a URL")
    named = reversed(call.parameters[1:_LAST_URL])
    urls = tuple(dict.fromkeys(filter(None, map(_url, named))))
    if not urls:
        raise Fault(
            FaultCode.WRONG_PARAMETERS, "expected an absolute http or https URL"
        )
    return urls


def ping_answer(message: str, *, is_error: bool) -> Mapping[str, Value]:
    """The members of the answer to a ping, which every sender knows."""
    return {"flerror": is_error, "message": message}


def _url(value: str) -> str:
    try:
        return read_web_url(value, "url", allows_fragment=False)
    except InvalidValue:
        return ""


LEASE_SECONDS: Final = 25 * 3_600
_SCHEMES: Final = {"http-post": "http", "https-post": "https"}
_SUCCESS: Final = re.compile(
    rb"""success["']?\s*[=:]\s*["']?\s*(true|1)\b""", re.IGNORECASE
)
_DOMAIN: Final = re.compile(r"[A-Za-z0-9.\-]{1,253}|\[[0-9A-Fa-f:.]+\]")


def cloud_url(cloud: Mapping[str, object]) -> str:
    """The URL for registering with a ``<cloud>`` element; "" if it cannot be
    determined.
    """
    scheme = _SCHEMES.get(_cloud_attribute(cloud, "protocol").lower())
    domain, port = _cloud_attribute(cloud, "domain"), _cloud_attribute(cloud, "port")
    path = _cloud_attribute(cloud, "path")
    if scheme is None or not _DOMAIN.fullmatch(domain) or not path.isprintable():
        return ""
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:9]) < 65_536):
        return ""
    if port == "443":
        scheme = "https"
    default = {"http": "80", "https": "443"}[scheme]
    place = domain if port in ("", default) else f"{domain}:{port}"
    return f"{scheme}://{place}/{path.lstrip('/')}"


def registration_form(*, callback: str, topic: str) -> bytes:
    """The body of a registration.

    With ``domain`` the cloud sends a challenge to the callback, instead of notifying
    the sender of the request.
    """
    parts = urlsplit(callback)
    is_https = parts.scheme == "https"
    fields = {
        "notifyProcedure": "",
        "domain": parts.hostname or "",
        "port": str(parts.port or (443 if is_https else 80)),
        "path": parts.path,
        "protocol": "https-post" if is_https else "http-post",
        "url1": topic,
    }
    return urlencode(fields).encode("ascii")


def is_registered(body: bytes) -> bool:
    """Whether a cloud's answer, in XML or JSON, reports success."""
    return _SUCCESS.search(body) is not None


def _cloud_attribute(cloud: Mapping[str, object], name: str) -> str:
    value = cloud.get(name, "")
    return value.strip() if isinstance(value, str) else ""
