"""Real proxies in front of a hub, configured by the examples of ``scripts/proxies``.

Nothing of an example is changed but its ports, addresses and certificates.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.command import ROOT

EXAMPLES = ROOT / "scripts" / "proxies"
HUB = "127.0.0.1:8080"
"""The address of the hub in the examples."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that is configured by a file.

    ``configure`` makes this file from the example's text, the address to listen at, the
    address of the hub, and a directory for what the program writes.
    """

    program: str
    example: str
    configure: Callable[[str, str, str, Path], str]
    arguments: Callable[[Path], tuple[str, ...]]

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.program, path=_paths()) is not None


def _paths() -> str:
    """The path of commands, and the directory where Debian has servers."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"


def _replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def _caddy(text: str, address: str, hub: str, _folder: Path) -> str:
    site = _replaced(
        text,
        ("{$FANFARE_DOMAIN:hub.example}", f"http://{address}"),
        (f"{{$FANFARE_UPSTREAM:{HUB}}}", hub),
    )
    return "{\n\tadmin off\n\tdefault_bind 127.0.0.1\n}\n" + site


def _nginx(text: str, address: str, hub: str, folder: Path) -> str:
    site = _replaced(text, ("listen 443 ssl;", f"listen {address};"), (HUB, hub))
    site = "\n".join(s for s in site.splitlines() if "ssl_certificate" not in s)
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{each}_temp_path {folder}/{each};\n" for each in places)
    return (
        "daemon off; master_process off; error_log stderr;\n"
        f"pid {folder}/nginx.pid;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{site}\n}}\n"
    )


def _haproxy(text: str, address: str, hub: str, _folder: Path) -> str:
    return _replaced(
        text,
        (
            "bind :443 ssl crt /etc/haproxy/hub.example.pem alpn h2,http/1.1",
            f"bind {address}",
        ),
        (HUB, hub),
    )


PROXIES = (
    Proxy(
        "caddy",
        "Caddyfile",
        _caddy,
        lambda file: ("run", "--adapter", "caddyfile", "--config", str(file)),
    ),
    Proxy(
        "nginx",
        "nginx.conf",
        _nginx,
        lambda file: ("-p", str(file.parent), "-e", "stderr", "-c", str(file)),
    ),
    Proxy(
        "haproxy",
        "haproxy.cfg",
        _haproxy,
        lambda file: ("-db", "-f", str(file)),
    ),
)


@asynccontextmanager
async def running_proxy(
    proxy: Proxy, folder: Path, port: int, hub_port: int
) -> AsyncIterator[None]:
    """Run a proxy at a port of 127.0.0.1 until the block ends."""
    text = (EXAMPLES / proxy.example).read_text()
    file = folder / proxy.example
    address, hub = f"127.0.0.1:{port}", f"127.0.0.1:{hub_port}"
    file.write_text(proxy.configure(text, address, hub, folder))
    path = shutil.which(proxy.program, path=_paths())
    assert path is not None
    with (folder / f"{proxy.program}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(path, *proxy.arguments(file)),
            env={**os.environ, "HOME": str(folder)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
