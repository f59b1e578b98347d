"""The bill of materials says what CycloneDX 1.6 wants, of what the hub needs."""

from __future__ import annotations

from importlib.metadata import distribution, version
from typing import Any

import pytest
from jsonschema import Draft7Validator

from scripts.sbom import bill_of_materials

PURL = {"type": "string", "pattern": r"^pkg:pypi/[a-z0-9.-]+@[^/@?#+]+$"}
COMPONENT = {
    "required": ["type", "name", "version", "bom-ref", "purl"],
    "properties": {
        "type": {"enum": ["application", "library"]},
        "bom-ref": PURL,
        "purl": PURL,
        "licenses": {
            "oneOf": [
                {
                    "maxItems": 1,
                    "items": {
                        "required": ["expression"],
                        "properties": {"expression": {"type": "string"}},
                        "additionalProperties": False,
                    },
                },
                {
                    "items": {
                        "required": ["license"],
                        "properties": {"license": {"required": ["name"]}},
                        "additionalProperties": False,
                    }
                },
            ]
        },
    },
}
DOCUMENT = {
    "required": ["bomFormat", "specVersion", "metadata", "components", "dependencies"],
    "properties": {
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "version": {"type": "integer", "minimum": 1},
        "serialNumber": {
            "pattern": "^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
        },
        "metadata": {"properties": {"component": COMPONENT}},
        "components": {"items": COMPONENT, "uniqueItems": True},
        "dependencies": {"items": {"required": ["ref"]}, "uniqueItems": True},
    },
}
"""What the schema of CycloneDX 1.6 wants of the members that are written here."""


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    return bill_of_materials()


def test_it_is_a_document_of_cyclonedx(bill: dict[str, Any]) -> None:
    Draft7Validator(DOCUMENT).validate(bill)


def test_it_has_what_the_hub_needs_and_no_tools(bill: dict[str, Any]) -> None:
    versions = {each["name"]: each["version"] for each in bill["components"]}
    assert versions["starlette"] == version("starlette")
    assert "anyio" in versions  # which starlette needs
    assert not {"pytest", "ruff", "hatchling", "fanfare-hub"} & versions.keys()
    assert bill["metadata"]["component"]["version"] == version("fanfare-hub")


def test_every_dependency_leads_to_a_component(bill: dict[str, Any]) -> None:
    components = [bill["metadata"]["component"], *bill["components"]]
    known = {each["bom-ref"] for each in components}
    needed = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert needed.keys() == known
    assert set().union(*needed.values()) == known - {components[0]["bom-ref"]}


def test_a_licence_is_what_the_package_says(bill: dict[str, Any]) -> None:
    said = distribution("starlette").metadata["License-Expression"]
    [starlette] = (e for e in bill["components"] if e["name"] == "starlette")
    assert starlette["licenses"] == [{"expression": said}]


def test_the_same_environment_makes_the_same_document(bill: dict[str, Any]) -> None:
    assert bill_of_materials() == bill
