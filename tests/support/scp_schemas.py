"""The specifications' schemas, which check what the hub publishes.

Those of SCP are its own files (CC0). That of sitemaps restates the rules of
sitemaps.org's 0.9: extensions first, strictly validated, then at least one page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from lxml import etree

FOLDER = Path(__file__).parents[1] / "data" / "scp"

_BOTH = f"""
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:import namespace="http://www.sitemaps.org/schemas/sitemap/0.9"
             schemaLocation="{(FOLDER / "sitemap-0.9.xsd").as_uri()}"/>
  <xs:import namespace="https://scp-protocol.org/schemas/sitemap/1.0"
             schemaLocation="{(FOLDER / "scp-sitemap-1.0.xsd").as_uri()}"/>
</xs:schema>
"""


@cache
def _validator(name: str) -> Any:
    schema = json.loads((FOLDER / f"scp-{name}.schema.json").read_text())
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return jsonschema.Draft202012Validator(schema, format_checker=checker)


def faults_of_head(head: object) -> list[str]:
    return [each.message for each in _validator("collection").iter_errors(head)]


def faults_of_page(page: object) -> list[str]:
    return [each.message for each in _validator("page").iter_errors(page)]


def faults_of_file(raw: bytes) -> list[str]:
    """The faults of a whole collection, uncompressed."""
    head, *pages = map(json.loads, raw.splitlines())
    faults = faults_of_head(head)
    for page in pages:
        faults += faults_of_page(page)
    urls = [page["url"] for page in pages]
    return [*faults, *(f"{url} is there twice" for url in _repeated(urls))]


def faults_of_sitemap(document: bytes) -> list[str]:
    schema = etree.XMLSchema(etree.fromstring(_BOTH))
    schema.validate(etree.fromstring(document))
    return [str(each) for each in schema.error_log]


def _repeated(values: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {each for each in values if each in seen or seen.add(each)}  # type: ignore[func-returns-value]
