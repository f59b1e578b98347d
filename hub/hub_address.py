"""Where a running hub listens: a 0600 file beside its database, by which commands find
the hub.

The file also has a key, which is new at each start. Another program may answer at the
URL, because the hub was killed and its port taken. So a command demands proof of the
key before it sends a token there.

Without the file, a hub at FANFARE_PORT is asked to prove that it has the admin token.
The command first shows that it has the token itself, so that the hub gives nobody else
a proof from which to guess it. Both proofs are valid for one connection, by the
addresses and ports of its two ends: a program that relays them to a hub, here or on
another machine, has a different connection.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec

from hub.private_files import write_private

SUFFIX: Final = ".hub"
IDENTITY_PATH: Final = "/identity"
SHORTEST_CHALLENGE: Final = 16
LONGEST_CHALLENGE: Final = 128
_LARGEST_FILE = 64 * 1024
_PURPOSE = "fanfare identity"
_CLAIM, _PROOF = "fanfare command", "fanfare hub"
"""Prefixes of what is signed with the admin token, by the command and by the hub."""
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - replaces them


Endpoint = tuple[str, int]
"""One end of a connection: address and port."""


class HubAddress(msgspec.Struct, frozen=True, kw_only=True):
    """``url``: where it listens; ``public_url``: how others reach it."""

    url: str
    public_url: str
    key: str


class AddressUnreadable(Exception):
    """The file exists, but cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"hub address {path}: {reason}")


def create_address(host: str, port: int, public_url: str) -> HubAddress:
    """The address of a hub that starts now, with a new key."""
    return HubAddress(
        url=listening_url(host, port),
        public_url=public_url,
        key=secrets.token_hex(32),
    )


def listening_url(host: str, port: int) -> str:
    """The URL by which this machine reaches a server that listens there."""
    host = _EVERY_ADDRESS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def address_file(database: Path) -> Path:
    """The path of the file, beside the database itself, even if a link leads to
    that."""
    database = database.resolve()
    return database.with_name(database.name + SUFFIX)


def write_address(path: Path, address: HubAddress) -> None:
    """Write the address; the file appears whole or not at all. Raises `OSError`."""
    write_private(path, msgspec.json.encode(address).decode())


def read_address(path: Path) -> HubAddress | None:
    """The address of the running hub; None if none runs. Raises `AddressUnreadable`."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST_FILE), type=HubAddress)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise AddressUnreadable(path, error.strerror or str(error)) from error
    except msgspec.MsgspecError as error:
        raise AddressUnreadable(path, f"expected a hub's address: {error}") from error


def remove_address(path: Path, address: HubAddress) -> None:
    """Remove the file, unless it belongs to another hub by now. Raises `OSError`."""
    try:
        is_own = read_address(path) == address
    except AddressUnreadable:
        is_own = False
    if is_own:
        path.unlink(missing_ok=True)


def prove_identity(key: str, challenge: str) -> str:
    """The answer to a challenge, which only a holder of the key can give."""
    return _sign(key, _PURPOSE, challenge)


def is_proof(address: HubAddress, challenge: str, proof: object) -> bool:
    return is_same(proof, prove_identity(address.key, challenge))


def name_connection(client: Endpoint, server: Endpoint) -> str:
    """A name that is the same at both ends of a connection, unless somebody relays
    it."""
    return " ".join(f"{_plain(host)} {port}" for host, port in (client, server))


def is_on_one_machine(client: Endpoint, server: Endpoint) -> bool:
    """Whether a connection was made from the machine that it leads to."""
    host = _plain(client[0])
    return host == _plain(server[0]) or host == "::1" or host.startswith("127.")


def _plain(host: str) -> str:
    """An IPv4 address is the same by IPv6."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def claim_token(token: str, connection: str, challenge: str) -> str:
    """The claim of a command, which only a holder of the admin token can make on that
    connection."""
    return _sign(token, _CLAIM, connection, challenge)


def prove_token(token: str, connection: str, challenge: str) -> str:
    """The hub's answer to a claim, which only a holder of the admin token can give on
    that connection."""
    return _sign(token, _PROOF, connection, challenge)


def is_same(given: object, expected: str) -> bool:
    """Whether both are equal; the time that this takes reveals nothing."""
    return isinstance(given, str) and secrets.compare_digest(
        given.encode(), expected.encode()
    )


def _sign(key: str, *parts: str) -> str:
    message = "\n".join(parts).encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()
