"""Only regular files of limited size are read, and only inside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.documents import read
from gsd_fsm.documents.read import Malformed, Missing, Unreadable, read_inside, require_inside

CONTENT = b"\xff\x00binary\r\n"
LINKS = {"device": "/dev/zero", "cycle": "cycle", "dangling": "nothing", "folder/link": "../a.txt",
         "up": "..", "absolute": "/etc/passwd", "beside": "../project-2/secret",
         "above": "../secret"}  # fmt: skip
both = pytest.mark.parametrize("use", [read_inside, require_inside])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with a file, a pipe and links, next to files of others."""
    root = tmp_path / "project"
    for folder in (root / "folder", tmp_path / "project-2"):
        folder.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "project-2"):
        (folder / "secret").write_text("root:x:0:0")
    (root / "a.txt").write_bytes(CONTENT)
    os.mkfifo(root / "pipe")
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    return root


def test_read_bytes_rejects_other_than_regular_files_also_once_opened(root, monkeypatch) -> None:
    for name in ("pipe", "device", "folder"):
        with pytest.raises(Unreadable, match=f"{name}: not a regular file"):
            read.read_bytes(root / name)
    regular = (root / "a.txt").stat()
    monkeypatch.setattr(Path, "stat", lambda *_args, **_options: regular)
    with pytest.raises(Unreadable, match="not a regular file"):
        read.read_bytes(root / "pipe")


def test_read_if_exists_returns_none_for_a_missing_file_but_rejects_a_broken_link(root) -> None:
    assert read.read_if_exists(root / "nothing") is None
    assert read.read_if_exists(root / "a.txt" / "below") is None
    for name in ("dangling", "cycle"):
        with pytest.raises(Unreadable, match=f"{name}: cannot be read: "):
            read.read_if_exists(root / name)


def test_decode_returns_text_or_reports_the_line_of_other_bytes() -> None:
    assert read.decode(b"\xef\xbb\xbfa\r\nb\rc\n", "F") == "a\nb\nc\n"
    for content, message in (
        (b"a\n\xff", "F:2: not valid UTF-8"),
        (b"a\n\nb\0", "F:3: not a text file (NUL byte)"),
    ):
        with pytest.raises(Malformed) as error:
            read.decode(content, "F")
        assert error.value.message == message


def test_read_inside_stops_at_the_limit(root: Path) -> None:
    os.truncate(root / "a.txt", read.MAX_BYTES)
    assert len(read_inside(root, "a.txt")) == read.MAX_BYTES
    os.truncate(root / "a.txt", 1 << 40)
    with pytest.raises(Unreadable, match="larger than 16 MiB"):
        read_inside(root, "a.txt")
    require_inside(root, "a.txt")


def test_read_inside_follows_links_within_the_project(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    for project, path in ((root, "a.txt"), (root, "folder/link"), (root.parent / "alias", "a.txt")):
        assert read_inside(project, path) == CONTENT
        assert read.is_inside(project, path)


@both
@pytest.mark.parametrize(
    "path",
    ["../secret", "folder/../../secret", "/etc/passwd", "..\\secret", "C:\\secret", "C:secret",
     "\\secret", "folder/../a.txt", "above", "absolute", "beside", "up/secret"],
)  # fmt: skip
def test_read_inside_rejects_paths_and_links_that_may_lead_outside(root, path, use) -> None:
    with pytest.raises(Unreadable, match="points outside the project"):
        use(root, path)
    assert not read.is_inside(root, path)


@both
@pytest.mark.parametrize("path", ["pipe", "folder", "cycle", "nul\0byte", "\ud800", "x" * 5000])
def test_read_inside_rejects_everything_but_regular_files(root, path, use) -> None:
    with pytest.raises(Unreadable):
        use(root, path)


@both
def test_read_inside_reports_missing_files(root: Path, use) -> None:
    for path in ("nothing", "folder/nothing", "a.txt/below", "dangling"):
        with pytest.raises(Missing, match=f"missing file: {path}"):
            use(root, path)


def test_require_inside_takes_a_slash_at_the_end_for_a_directory(root: Path) -> None:
    require_inside(root, "folder/")
    with pytest.raises(Unreadable, match="not a directory"):
        require_inside(root, "a.txt/")


@both
def test_read_inside_refuses_link_that_replaced_the_file(root: Path, monkeypatch, use) -> None:
    monkeypatch.setattr(read, "locate_inside", lambda project, path: project / path)
    with pytest.raises(Unreadable):
        use(root, "above")
