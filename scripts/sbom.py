"""What a wheel of the hub is installed with, as CycloneDX 1.6 in JSON.

    .venv/bin/python -m scripts.sbom dist/fanfare-hub.cdx.json

Read from the environment that this runs in: the hub, and what its dependencies and
extras bring in there, each once. Development tools beside them are left out. The same
environment makes the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HUB: Final = "fanfare-hub"
LONGEST_LICENSE: Final = 60
"""Characters. What is longer is no name but the text itself."""

_CLASSIFIER: Final = "License :: "


def bill_of_materials(name: str = HUB) -> dict[str, Any]:
    """Of a package that is installed, with all its extras.

    Raises `PackageNotFoundError` if it is not. A dependency that is not installed is
    left out: an extra that was not asked for, or what another system needs.
    """
    found: dict[str, Distribution] = {canonicalize_name(name): distribution(name)}
    needed: dict[str, list[str]] = {}
    extras = frozenset(distribution_extras(name))
    waiting: list[tuple[str, frozenset[str]]] = [(canonicalize_name(name), extras)]
    seen = set(waiting)
    while waiting:
        taker, extras = waiting.pop()
        for requirement in required_by(found[taker], extras):
            key = canonicalize_name(requirement.name)
            try:
                found.setdefault(key, distribution(key))
            except PackageNotFoundError:
                continue
            needed.setdefault(taker, []).append(key)
            step = (key, frozenset(requirement.extras))
            if step not in seen:
                seen.add(step)
                waiting.append(step)
    return document(found, needed)


def distribution_extras(name: str) -> list[str]:
    return distribution(name).metadata.get_all("Provides-Extra") or []


def required_by(taker: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for requirement in map(Requirement, taker.requires or ()):
        marker = requirement.marker
        if marker is None or any(
            marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield requirement


def document(
    found: Mapping[str, Distribution], needed: Mapping[str, list[str]]
) -> dict[str, Any]:
    """``found``: the hub first; ``needed``: by name, what each depends on."""
    hub, *others = (component(name, each) for name, each in found.items())
    hub["type"] = "application"
    content = {
        "metadata": {"component": hub},
        "components": sorted(others, key=lambda each: str(each["bom-ref"])),
        "dependencies": [
            {
                "ref": reference(name, found[name]),
                "dependsOn": sorted(
                    {reference(each, found[each]) for each in needed.get(name, ())}
                ),
            }
            for name in sorted(found)
        ],
    }
    identity = uuid5(NAMESPACE_URL, msgspec.json.encode(content, order="sorted").hex())
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity}",
        "version": 1,
        **content,
    }


def component(name: str, found: Distribution) -> dict[str, Any]:
    summary = header(found, "Summary")
    licenses = licenses_of(found)
    return {
        "type": "library",
        "bom-ref": reference(name, found),
        "name": name,
        "version": found.version,
        **({"description": summary} if summary else {}),
        **({"licenses": licenses} if licenses else {}),
        "purl": reference(name, found),
    }


def reference(name: str, found: Distribution) -> str:
    """The package URL."""
    return f"pkg:pypi/{name}@{found.version.replace('+', '%2B')}"


def licenses_of(found: Distribution) -> list[dict[str, Any]]:
    """An SPDX expression where the package gives one, otherwise names as it has them;
    empty if it says nothing."""
    expression = header(found, "License-Expression")
    if expression:
        return [{"expression": expression}]
    said = header(found, "License")
    if said and len(said) <= LONGEST_LICENSE and "\n" not in said:
        return [{"license": {"name": said}}]
    classifiers = found.metadata.get_all("Classifier") or []
    named = (each.rpartition(" :: ")[2] for each in classifiers if _CLASSIFIER in each)
    return [{"license": {"name": each}} for each in named]


def header(found: Distribution, name: str) -> str:
    """The first of its metadata's lines with that name; "" if there is none."""
    return next(iter(found.metadata.get_all(name) or ()), "").strip()


def main(target: str) -> None:
    encoded = msgspec.json.format(msgspec.json.encode(bill_of_materials()))
    Path(target).write_bytes(encoded + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
