from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import StorageError
from storage.secrets import SecretBox, create_key, read_key, write_key

KEY = bytes(range(32))


@given(st.text())
def test_what_was_encrypted_can_be_decrypted(text: str) -> None:
    box = SecretBox(KEY)

    assert box.decrypt(box.encrypt(text)) == text


def test_the_same_secret_never_looks_the_same() -> None:
    box = SecretBox(KEY)

    assert box.encrypt("secret") != box.encrypt("secret")
    assert box.encrypt("") == ""


def test_another_key_decrypts_nothing() -> None:
    token = SecretBox(KEY).encrypt("secret")

    with pytest.raises(StorageError, match="does not fit the key file"):
        SecretBox(bytes(32)).decrypt(token)


def test_a_key_can_be_told_from_another_without_being_known() -> None:
    check = SecretBox(KEY).key_check

    assert check == SecretBox(KEY).key_check
    assert check != SecretBox(bytes(32)).key_check
    assert KEY.hex() not in check


def test_a_new_key_is_read_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "hub.db.key"

    key = create_key(path)

    assert read_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_key_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "hub.db.key"
    path.mkdir()

    with pytest.raises(OSError, match=r"hub\.db\.key"):
        write_key(path, KEY)

    assert list(tmp_path.iterdir()) == [path]
