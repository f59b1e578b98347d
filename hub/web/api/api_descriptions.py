"""The OpenAPI document in words: operations by tag, types, and examples of both."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from hub.web.operation import JSON
from hub.web.problem_types import type_of_status
from hub.web.problems import PROBLEM_TYPE

EVENTS: Final = "events"
"""The tag of what the hub posts to callbacks, and the name of its page."""
MEANINGS: Final = {
    "account": "The account of a token",
    "audit": "Who did what",
    "crawlers": "What crawlers find",
    "database": "Backups and checks",
    "deliveries": "Deliveries, failed ones, and tests",
    EVENTS: "Events that the hub posts to callbacks",
    "feeds": "Feeds, their plans and polls",
    "documents": "Entries of feeds, and how their documents are read",
    "lists": "Lists of feeds elsewhere that are followed",
    "monitoring": "Whether the hub is well, and its metrics",
    "openfeeder": "OpenFeeder: pages for language models",
    "operator": "The state of the hub, and links to log in by",
    "pages": "Pages for readers and publishers",
    "pings": "Pings of blogs",
    "plans": "What is done to many at once",
    "playground": "The WebSub playground",
    "push": "Pushes of other hubs",
    "streams": "Live connections",
    "subscriptions": "Subscriptions of callbacks",
    "tokens": "Tokens of accounts",
    "topics": "Public feeds as this hub has them",
    "websub": "The open WebSub hub",
}
"""Titles of tags."""
_IN_PATH: Final = re.compile(r"{\w+}")
_DEEPEST: Final = 4
"""How many levels of nested objects an example shows."""
_BOUNDS: Final = ("minimum", "maximum", "maxLength", "default")
_LARGEST: Final = 1 << 53
"""Larger bounds are those of the database, which readers need not know."""

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeWords:
    """A type in words; ``reference`` names one that is described below, or is ""."""

    before: str = ""
    reference: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """A parameter, or a member of a body."""

    name: str
    place: str = ""  # query or path
    type: TypeWords
    help: str = ""
    is_required: bool = False
    is_deprecated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedAnswer:
    status: str
    phrase: str
    contents: tuple[tuple[str, TypeWords], ...] = ()  # by media type
    headers: tuple[tuple[str, str], ...] = ()
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedOperation:
    """An operation."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[DescribedMember, ...]
    body: TypeWords | None = None
    fields: tuple[DescribedMember, ...] = ()  # of a form
    answers: tuple[DescribedAnswer, ...]
    problems: tuple[tuple[str, str], ...] = ()  # status, and where it is explained
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDescription:
    name: str
    description: str
    choices: tuple[str, ...] = ()
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPage:
    name: str
    meaning: str
    operations: tuple[DescribedOperation, ...]
    types: tuple[TypeDescription, ...]


@dataclass(slots=True)
class ApiReader:
    """Reads pages from an OpenAPI document; ``url`` is the hub's."""

    document: Mapping[str, Any]
    url: str
    _schemas: Mapping[str, Schema] = field(init=False)

    def __post_init__(self) -> None:
        self._schemas = self.document["components"]["schemas"]

    def tags(self) -> list[str]:
        return [*dict.fromkeys(each["name"] for each in self.document["tags"]), EVENTS]

    def operations(self, tag: str) -> Iterator[tuple[str, str, Schema]]:
        """Method, path and description of each operation with the tag."""
        if tag == EVENTS:
            for name, methods in self.document["webhooks"].items():
                yield "POST", name, methods["post"]
            return
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                if tag in operation["tags"]:
                    yield method.upper(), path, operation

    def page(self, tag: str) -> TagPage:
        operations = list(self.operations(tag))
        named: set[str] = set()
        waiting = set(_references([each for _, _, each in operations]))
        while waiting:
            named |= waiting
            schemas = [self._schemas[each] for each in waiting]
            waiting = set(_references(schemas)) - named
        return TagPage(
            name=tag,
            meaning=MEANINGS[tag],
            operations=_without_repeats(self._operation(*each) for each in operations),
            types=tuple(self._type(each) for each in sorted(named)),
        )

    def _operation(
        self, method: str, path: str, operation: Schema
    ) -> DescribedOperation:
        body = operation.get("requestBody", {}).get("content", {})
        by_type = {name: each["schema"] for name, each in body.items()}
        form: Schema = next((it for name, it in by_type.items() if name != JSON), {})
        responses = operation["responses"].items()
        parameters = operation.get("parameters", ())
        return DescribedOperation(
            id=operation["operationId"],
            method=method,
            path=path,
            summary=operation["summary"],
            description=operation.get("description", ""),
            parameters=tuple(_parameter(each) for each in parameters),
            body=_words(by_type[JSON]) if JSON in by_type else None,
            fields=_members(form),
            answers=tuple(
                self._answer(status, each)
                for status, each in responses
                if not _is_problem(status, each)
            ),
            problems=tuple(
                (status, type_of_status(HTTPStatus(int(status))).url)
                for status, each in sorted(responses)
                if _is_problem(status, each)
            ),
            example="" if path[:1] != "/" else self._request(method, path, operation),
        )

    def _answer(self, status: str, response: Schema) -> DescribedAnswer:
        contents = response.get("content", {})
        shown = contents.get(JSON, {}).get("schema")
        example = "" if shown is None else self.example(shown)
        return DescribedAnswer(
            status=status,
            phrase=response["description"],
            contents=tuple(
                (name, _words(each["schema"])) for name, each in contents.items()
            ),
            headers=tuple(
                (name, each["description"])
                for name, each in response.get("headers", {}).items()
            ),
            example=example if len(example) > len("{}") else "",
        )

    def _type(self, name: str) -> TypeDescription:
        schema = self._schemas[name]
        return TypeDescription(
            name=name,
            description=schema.get("description", ""),
            choices=tuple(map(str, schema.get("enum", ()))),
            members=_members(schema),
        )

    # --- examples ---

    def _request(self, method: str, path: str, operation: Schema) -> str:
        """An operation's request as a command for the shell."""
        parts = ["curl"] if method == "GET" else ["curl", "-X", method]
        if operation.get("security") and {} not in operation["security"]:
            parts += ["-H", "Authorization: Bearer TOKEN"]
        query = {
            each["name"]: str(self._sample(each["schema"]))
            for each in operation["parameters"]
            if each["in"] == "query" and each["required"]
        }
        address = self.url + _IN_PATH.sub("1", path)
        parts.append(f"{address}?{urlencode(query)}" if query else address)
        content = operation.get("requestBody", {}).get("content", {})
        for media_type, body in content.items():
            if media_type == JSON:
                example = json.dumps(body.get("example", {}), ensure_ascii=False)
                parts += ["-H", f"Content-Type: {JSON}", "-d", example]
            else:
                for name in body["schema"].get("required", ()):
                    value = self._sample(body["schema"]["properties"][name])
                    parts += ["--data-urlencode", f"{name}={value}"]
        return " ".join(shlex.quote(each) for each in parts)

    def example(self, schema: Schema) -> str:
        return json.dumps(self._sample(schema), indent=1, ensure_ascii=False)

    def _sample(self, schema: Schema, depth: int = 0) -> Any:
        if "$ref" in schema:
            return self._sample(self._schemas[_name(schema)], depth)
        if "enum" in schema:
            return next(filter(None, schema["enum"]), "")
        if "anyOf" in schema:
            return self._sample(schema["anyOf"][0], depth)
        match schema.get("type"):
            case "object":
                return self._sample_object(schema, depth)
            case "array":
                items = schema.get("items")
                return [self._sample(items, depth)] if items else []
        return _sample_of_scalar(schema)

    def _sample_object(self, schema: Schema, depth: int) -> dict[str, Any]:
        members = schema.get("properties", {}) if depth < _DEEPEST else {}
        return {
            name: self._sample(each, depth + 1)
            for name, each in members.items()
            if not each.get("deprecated")
        }


def _sample_of_scalar(schema: Schema) -> Any:
    if schema.get("format") == "date-time":
        return "2026-11-24T12:00:00Z"
    samples = {"integer": 1, "number": 0.5, "boolean": True, "string": "…"}
    return schema.get("default", samples.get(schema.get("type", "")))


def _without_repeats(
    operations: Iterable[DescribedOperation],
) -> tuple[DescribedOperation, ...]:
    """The operations, with each example of an answer only where it comes first."""
    seen: set[str] = set()
    found = []
    for each in operations:
        answers = tuple(
            replace(it, example="") if it.example in seen else it for it in each.answers
        )
        seen |= {it.example for it in answers}
        found.append(replace(each, answers=answers))
    return tuple(found)


def _parameter(parameter: Schema) -> DescribedMember:
    return DescribedMember(
        name=parameter["name"],
        place=parameter["in"],
        type=_words(parameter["schema"]),
        help=parameter.get("description", ""),
        is_required=parameter["required"],
        is_deprecated=parameter.get("deprecated", False),
    )


def _members(schema: Schema) -> tuple[DescribedMember, ...]:
    required = schema.get("required", ())
    return tuple(
        DescribedMember(
            name=name,
            type=_words(each),
            help=each.get("description", ""),
            is_required=name in required,
            is_deprecated=each.get("deprecated", False),
        )
        for name, each in schema.get("properties", {}).items()
    )


def _words(schema: Schema) -> TypeWords:
    """A type in words.

    For example ``list of Feed``, ``integer, 1 to 1000, default 100``, or ``time or
    null``.
    """
    if "$ref" in schema:
        return TypeWords(reference=_name(schema))
    if "anyOf" in schema:
        first, *more = map(_words, schema["anyOf"])
        others = "".join(f" or {each.before}{each.reference}" for each in more)
        return TypeWords(
            before=first.before,
            reference=first.reference,
            after=f"{first.after}{others}",
        )
    if schema.get("type") == "array":
        items = _words(schema.get("items", {}))
        return TypeWords(
            before=f"list of {items.before}",
            reference=items.reference,
            after=items.after,
        )
    if "enum" in schema:
        listed = ", ".join(str(each) or '""' for each in schema["enum"])
        return TypeWords(before=f"one of {listed}{_bounds(schema)}")
    is_time = schema.get("format") == "date-time"
    kind = "time" if is_time else schema.get("type", "any JSON")
    return TypeWords(before=f"{kind}{_bounds(schema)}")


def _bounds(schema: Schema) -> str:
    least, largest, longest, default = map(schema.get, _BOUNDS)
    texts = []
    if least is not None and largest is not None and largest < _LARGEST:
        texts.append(f"{least} to {largest}")
    elif least is not None:
        texts.append(f"at least {least}")
    elif largest is not None and largest < _LARGEST:
        texts.append(f"at most {largest}")
    if longest is not None:
        texts.append(f"at most {longest} characters")
    if default not in (None, "", [], {}):
        texts.append(f"default {json.dumps(default)}")
    return "".join(f", {each}" for each in texts)


def _is_problem(status: str, response: Schema) -> bool:
    is_told = PROBLEM_TYPE in response.get("content", {})
    return is_told or (status.isdigit() and int(status) >= HTTPStatus.BAD_REQUEST)


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _references(value: Any) -> Iterator[str]:
    """Names of the types that a value refers to.

    The type of problems is left out, since problems have pages of their own.
    """
    match value:
        case {"$ref": str()}:
            if (name := _name(value)) != "Problem":
                yield name
        case dict():
            yield from _all_references(value.values())
        case list():
            yield from _all_references(value)


def _all_references(values: Iterable[Any]) -> Iterator[str]:
    for each in values:
        yield from _references(each)
