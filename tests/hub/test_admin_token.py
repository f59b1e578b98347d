from __future__ import annotations

from pathlib import Path

import pytest

from hub.admin_token import TokenUnreadable, ensure_token, read_token, token_file


def test_the_token_lies_beside_the_database(tmp_path: Path) -> None:
    assert token_file(tmp_path / "hub.db") == tmp_path / "admin-token"


def test_a_missing_token_is_made_once_and_only_its_owner_may_read_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data" / "admin-token"
    token = ensure_token(path)
    assert len(token) >= 32
    assert ensure_token(path) == token == read_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_token_others_could_read_is_taken_back_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "admin-token"
    path.write_text("secret\n")
    path.chmod(0o644)
    assert ensure_token(path) == "secret"
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_file_is_no_token(tmp_path: Path) -> None:
    assert read_token(tmp_path / "admin-token") is None


def test_an_empty_token_file_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "admin-token"
    path.touch()
    with pytest.raises(TokenUnreadable, match="delete it to get a new token"):
        ensure_token(path)


def test_a_token_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenUnreadable, match=str(tmp_path)):
        read_token(tmp_path)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(TokenUnreadable):
        ensure_token(tmp_path / "data" / "admin-token")
