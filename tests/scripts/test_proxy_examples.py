"""Traefik's example, which no test runs, is in order as far as can be read from it."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support.command import ROOT

FOLDER = ROOT / "scripts" / "proxies"


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return found


def test_what_traefik_is_told_leads_to_what_is_there() -> None:
    static, http = read("traefik.yaml"), read("traefik-fanfare.yaml")["http"]
    for router in http["routers"].values():
        assert set(router["entryPoints"]) <= static["entryPoints"].keys()
        assert router["tls"]["certResolver"] in static["certificatesResolvers"]
        balancer = http["services"][router["service"]]["loadBalancer"]
        assert balancer["serversTransport"] in http["serversTransports"]
