from __future__ import annotations

import os
from pathlib import Path

import pytest

from gsd_fsm.verify.inside import (
    MOST_BYTES,
    Missing,
    Unreadable,
    is_file,
    read_inside,
    require_file,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("root:x:0:0")
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_bytes(b"\xff\x00binary\r\n")
    (root / "folder").mkdir()
    return root


def test_a_plain_file_is_read_as_bytes_also_through_a_link_that_stays(root: Path) -> None:
    (root / "folder" / "link").symlink_to("../a.txt")
    assert read_inside(root, "a.txt") == b"\xff\x00binary\r\n"
    assert read_inside(root, "folder/link") == b"\xff\x00binary\r\n"
    assert is_file(root, "folder/link")


def test_the_project_may_be_reached_through_a_link(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    assert read_inside(root.parent / "alias", "a.txt").startswith(b"\xff")


@pytest.mark.parametrize(
    "path",
    ["../secret", "folder/../../secret", "/etc/passwd", "..\\secret", "C:\\secret", "C:secret",
     "\\secret", "folder/../a.txt"],
)  # fmt: skip
def test_a_path_that_may_lead_out_is_not_opened(root: Path, path: str) -> None:
    for attempt in (read_inside, require_file):
        with pytest.raises(Unreadable, match="leads outside of the project"):
            attempt(root, path)


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "../project-2/secret"])
def test_a_link_that_leads_out_is_not_followed(root: Path, target: str) -> None:
    (root.parent / "project-2").mkdir()
    (root.parent / "project-2" / "secret").write_text("x")
    (root / "link").symlink_to(target)
    (root / "up").symlink_to("..")
    for path in ("link", "up/secret"):
        with pytest.raises(Unreadable, match="leads outside"):
            read_inside(root, path)
        assert not is_file(root, path)


def test_what_is_no_file_is_told_at_once(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    for path in ("pipe", "folder"):
        with pytest.raises(Unreadable, match="not a plain file"):
            read_inside(root, path)
        with pytest.raises(Unreadable, match="not a plain file"):
            require_file(root, path)
    with pytest.raises(Unreadable):
        read_inside(root, "loop")
    with pytest.raises(Unreadable):
        read_inside(root, "nul\0byte")
    with pytest.raises(Unreadable):
        read_inside(root, "\ud800")
    with pytest.raises(Unreadable):
        read_inside(root, "x" * 5000)


def test_a_missing_file_is_missing_whatever_is_missing_of_it(root: Path) -> None:
    (root / "dangling").symlink_to("nowhere")
    for path in ("nothing", "folder/nothing", "a.txt/below", "dangling"):
        with pytest.raises(Missing, match=f"missing file: {path}"):
            read_inside(root, path)


def test_a_slash_at_the_end_means_a_directory(root: Path) -> None:
    require_file(root, "folder/")
    with pytest.raises(Unreadable, match="not a directory"):
        require_file(root, "a.txt/")


def test_a_file_is_read_up_to_its_limit_and_not_beyond(root: Path) -> None:
    big = root / "big"
    big.touch()
    os.truncate(big, MOST_BYTES)
    assert len(read_inside(root, "big")) == MOST_BYTES
    os.truncate(big, 1 << 40)
    with pytest.raises(Unreadable, match="larger than 16 MiB"):
        read_inside(root, "big")
    require_file(root, "big")
