"""Only regular files of limited size are read, and only inside the project."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_fsm.documents.read import (
    MAX_BYTES,
    Malformed,
    Missing,
    Unreadable,
    decode,
    is_inside,
    read_bytes,
    read_if_exists,
    read_inside,
    require_inside,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("root:x:0:0")
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_bytes(b"\xff\x00binary\r\n")
    (root / "folder").mkdir()
    return root


def test_read_bytes_rejects_everything_but_regular_files(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device", "folder"):
        with pytest.raises(Unreadable, match=f"{name}: not a regular file"):
            read_bytes(root / name)


def test_read_bytes_checks_the_opened_file_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    regular = (root / "a.txt").stat()
    monkeypatch.setattr(Path, "stat", lambda *_args, **_options: regular)
    with pytest.raises(Unreadable, match="not a regular file"):
        read_bytes(root / "pipe")


def test_read_if_exists_returns_none_for_a_missing_file_but_rejects_a_broken_link(
    root: Path,
) -> None:
    assert read_if_exists(root / "nothing") is None
    assert read_if_exists(root / "a.txt" / "below") is None
    (root / "link").symlink_to("nothing")
    (root / "cycle").symlink_to("cycle")
    for name in ("link", "cycle"):
        with pytest.raises(Unreadable, match=f"{name}: cannot be read: "):
            read_if_exists(root / name)


def test_read_inside_stops_at_the_limit(root: Path) -> None:
    big = root / "big"
    big.touch()
    os.truncate(big, MAX_BYTES)
    assert len(read_inside(root, "big")) == MAX_BYTES
    os.truncate(big, 1 << 40)
    with pytest.raises(Unreadable, match="larger than 16 MiB"):
        read_inside(root, "big")
    require_inside(root, "big")


def test_decode_removes_byte_order_mark_and_carriage_returns() -> None:
    assert decode(b"\xef\xbb\xbfa\r\nb\rc\n", "F") == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\n\xff", "F:2: not valid UTF-8"),
        (b"a\n\nb\0", "F:3: not a text file (NUL byte)"),
    ],
)
def test_decode_reports_the_line_of_bytes_that_are_not_text(content: bytes, message: str) -> None:
    with pytest.raises(Malformed) as error:
        decode(content, "F")
    assert error.value.message == message


# files of a project


def test_read_inside_follows_links_within_the_project(root: Path) -> None:
    (root / "folder" / "link").symlink_to("../a.txt")
    (root.parent / "alias").symlink_to(root)
    assert read_inside(root, "a.txt") == b"\xff\x00binary\r\n"
    assert read_inside(root, "folder/link") == b"\xff\x00binary\r\n"
    assert is_inside(root, "folder/link")
    assert read_inside(root.parent / "alias", "a.txt").startswith(b"\xff")


@pytest.mark.parametrize(
    "path",
    ["../secret", "folder/../../secret", "/etc/passwd", "..\\secret", "C:\\secret", "C:secret",
     "\\secret", "folder/../a.txt"],
)  # fmt: skip
def test_read_inside_rejects_a_path_that_may_lead_outside(root: Path, path: str) -> None:
    for attempt in (read_inside, require_inside):
        with pytest.raises(Unreadable, match="points outside the project"):
            attempt(root, path)


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "../project-2/secret"])
def test_read_inside_rejects_a_link_that_leads_outside(root: Path, target: str) -> None:
    (root.parent / "project-2").mkdir()
    (root.parent / "project-2" / "secret").write_text("x")
    (root / "link").symlink_to(target)
    (root / "up").symlink_to("..")
    for path in ("link", "up/secret"):
        with pytest.raises(Unreadable, match="points outside the project"):
            read_inside(root, path)
        assert not is_inside(root, path)


@pytest.mark.parametrize("path", ["pipe", "folder", "cycle", "nul\0byte", "\ud800", "x" * 5000])
def test_read_inside_rejects_everything_but_regular_files(root: Path, path: str) -> None:
    os.mkfifo(root / "pipe")
    (root / "cycle").symlink_to("cycle")
    for attempt in (read_inside, require_inside):
        with pytest.raises(Unreadable):
            attempt(root, path)


def test_read_inside_reports_missing_files(root: Path) -> None:
    (root / "dangling").symlink_to("nowhere")
    for path in ("nothing", "folder/nothing", "a.txt/below", "dangling"):
        with pytest.raises(Missing, match=f"missing file: {path}"):
            read_inside(root, path)


def test_require_inside_takes_a_slash_at_the_end_for_a_directory(root: Path) -> None:
    require_inside(root, "folder/")
    with pytest.raises(Unreadable, match="not a directory"):
        require_inside(root, "a.txt/")


@pytest.mark.parametrize("use", [read_inside, require_inside])
def test_read_inside_refuses_link_that_replaced_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path, str], object]
) -> None:
    (tmp_path / "secret").write_text("outside")
    project = tmp_path / "project"
    project.mkdir()
    (project / "code.py").symlink_to(tmp_path / "secret")
    monkeypatch.setattr(
        "gsd_fsm.documents.read.locate_inside", lambda project, path: project / path
    )
    with pytest.raises(Unreadable):
        use(project, "code.py")
