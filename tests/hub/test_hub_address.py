from __future__ import annotations

from pathlib import Path

import pytest

from hub.hub_address import (
    AddressUnreadable,
    address_file,
    create_address,
    is_proof,
    prove_identity,
    read_address,
    remove_address,
    write_address,
)

ADDRESS = create_address("127.0.0.1", 8080, "https://hub.example")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return address_file(tmp_path / "data" / "hub.db")


def test_the_file_lies_beside_its_database(tmp_path: Path) -> None:
    assert address_file(tmp_path / "hub.db") == tmp_path / "hub.db.hub"


def test_it_is_written_whole_and_only_its_owner_may_read_it(path: Path) -> None:
    write_address(path, ADDRESS)
    assert read_address(path) == ADDRESS
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("parent", ["data", "data/file/below"])
def test_no_file_is_no_running_hub(tmp_path: Path, parent: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").touch()
    assert read_address(tmp_path / parent / "hub.db.hub") is None


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b'{"url": "http://a.example"}']
)
def test_another_file_is_refused_with_its_name(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(AddressUnreadable, match=str(path)):
        read_address(path)


def test_a_hub_that_ends_takes_its_file_with_it(path: Path) -> None:
    write_address(path, ADDRESS)
    remove_address(path, ADDRESS)
    assert not path.exists()
    remove_address(path, ADDRESS)


@pytest.mark.parametrize("is_readable", [True, False])
def test_but_not_the_file_of_another(path: Path, is_readable: bool) -> None:
    write_address(path, create_address("127.0.0.1", 8080, ""))
    if not is_readable:
        path.write_text("something else")
    remove_address(path, ADDRESS)
    assert path.exists()


def test_a_file_that_cannot_be_written_leaves_nothing(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_address(path, ADDRESS)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:81"),
        ("hub.example", "http://hub.example:81"),
        ("0.0.0.0", "http://127.0.0.1:81"),
        ("::", "http://[::1]:81"),
        ("::1", "http://[::1]:81"),
    ],
)
def test_it_names_where_this_machine_reaches_the_hub(host: str, url: str) -> None:
    assert create_address(host, 81, "").url == url


def test_only_the_key_of_this_start_proves_it() -> None:
    proof = prove_identity(ADDRESS.key, "challenge")
    another = create_address("127.0.0.1", 8080, "https://hub.example")
    assert is_proof(ADDRESS, "challenge", proof)
    assert not is_proof(another, "challenge", proof)
    assert not is_proof(ADDRESS, "another challenge", proof)


@pytest.mark.parametrize("proof", [None, 1, "", "prüf"])
def test_anything_else_is_no_proof(proof: object) -> None:
    assert not is_proof(ADDRESS, "challenge", proof)
