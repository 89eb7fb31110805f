"""Change files: only as computed, in one step, and inside the project."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import CannotWrite, UsageError
from gsd_fsm.documents import files
from gsd_fsm.documents.files import Change, TextFile, open_text, write_change


def test_write_change_creates_replaces_and_removes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    write_change(Change(path, None, b"1", private=True))
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"1", 0o600)
    path.chmod(0o640)
    write_change(Change(path, b"1", b"2"))
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"2", 0o640)
    write_change(Change(path, b"2", None))
    assert list(path.parent.iterdir()) == []


def test_write_change_refuses_a_file_that_was_changed_or_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"theirs")
    with pytest.raises(CannotWrite, match="changed in the meantime"):
        write_change(Change(path, None, b"ours"))
    path.chmod(0o444)
    with pytest.raises(CannotWrite, match="is read-only"):
        write_change(Change(path, b"theirs", b"ours"))
    assert [it.read_bytes() for it in tmp_path.iterdir()] == [b"theirs"]


def test_write_change_leaves_no_temporary_file_after_an_error(tmp_path: Path, monkeypatch) -> None:
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotWrite, match="No space left"):
        write_change(Change(tmp_path / "a", None, b"1"))
    assert list(tmp_path.iterdir()) == []


def test_require_writable_accepts_a_new_directory_but_not_a_file_in_its_place(tmp_path) -> None:
    files.require_writable(tmp_path / "a" / "b" / "c")
    (tmp_path / "a").touch()
    with pytest.raises(CannotWrite, match="a is not a directory"):
        files.require_writable(tmp_path / "a" / "b" / "c")


def test_current_content_is_none_for_a_missing_file_only(tmp_path: Path) -> None:
    assert files.current_content(tmp_path / "a") is None
    with pytest.raises(UsageError, match="not a regular file"):
        files.current_content(tmp_path)


def test_open_text_refuses_links_outside_the_project_and_binary_files(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "theirs").write_text("x")
    (project / "link").symlink_to("../theirs")
    (project / "broken").symlink_to("nothing")
    (project / "binary").write_bytes(b"a\n\0")
    for name, problem in (
        ("link", "link points outside the project: "),
        ("broken", "is a broken link"),
        ("binary", r"binary:2: not a text file \(NUL byte\)"),
    ):
        with pytest.raises(UsageError, match=problem):
            open_text(project, project / name)
    assert open_text(project, project / "new") == (project / "new", None)


@given(st.binary(max_size=50), st.binary(max_size=5))
def test_text_file_keeps_every_byte_that_is_not_edited(content: bytes, more: bytes) -> None:
    file = TextFile(Path("a"), content)
    assert file.changes(file.text) == []
    for bom in (b"", b"\xef\xbb\xbf"):
        file = TextFile(Path("a"), bom + b"x" + content)
        (change,) = file.changes(file.text + more.decode("utf-8", "surrogateescape") + "!")
        assert change.after == bom + b"x" + content + more + b"!"
