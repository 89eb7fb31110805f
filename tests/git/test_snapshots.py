"""A snapshot has the files as they are on disk, changes nothing else, and can be restored."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gsd_fsm.core.errors import Refused
from gsd_fsm.git.snapshots import (
    LARGEST,
    Snapshot,
    is_snapshot,
    restoration,
    restore_files,
    take_snapshot,
)
from tests.support.repositories import (
    RAW,
    commit,
    files_of,
    git,
    hook,
    new_repository,
    opened,
    posix_only,
    status,
)
from tests.support.verification import lay


def take(repo: Path) -> Snapshot:
    repository = opened(repo)
    return take_snapshot(repository, repository.head() or "", "about")


def restore(repo: Path, target: str) -> None:
    """Restore as a rollback does: from the state that the last snapshot has."""
    restore_files(opened(repo), take(repo).commit, target)


def content(repo: Path, sha: str) -> dict[str, str]:
    """Return mode and content of each file of a commit."""
    lines = git(repo, "ls-tree", "-rz", sha, **RAW).split("\0")[:-1]
    entries = (line.split("\t", 1) for line in lines)
    return {
        path: facts.split()[0] + " " + git(repo, "cat-file", "-p", facts.split()[2], **RAW)
        for facts, path in entries
        if facts.split()[1] == "blob"
    }


def on_disk(repo: Path) -> dict[str, str]:
    """Return mode and content of each file in the work tree, without those of git."""
    found = {}
    for path in repo.rglob("*"):
        name = path.relative_to(repo)
        if name.parts[0] == ".git" or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink():
            found[str(name)] = f"120000 {path.readlink()}"
        else:
            mode = "100755" if path.stat().st_mode & 0o100 else "100644"
            found[str(name)] = f"{mode} {path.read_text().strip()}"
    return found


def private(repo: Path) -> dict[str, object]:
    """Return what a snapshot must not touch: everything in .git but objects, with its times."""
    kept = (it for it in (repo / ".git").rglob("*") if it.is_file() and "objects" not in it.parts)
    return {str(it): (it.stat().st_mtime_ns, it.read_bytes()) for it in kept}


def make_changes(repo: Path) -> None:
    """Change, delete, link, stage, unstage and add files in every way."""
    for name in "abcdef":
        commit(repo, name)
    lay(repo, {"a": "changed", "new": "", "new folder/ü": "new", "staged": "staged", "e": "staged"})
    (repo / "b").unlink()
    (repo / "c").chmod(0o755)
    (repo / "d").unlink()
    (repo / "d").symlink_to("a")
    git(repo, "add", "staged", "e")
    lay(repo, {"e": "changed after that", "intended": "to be added"})
    git(repo, "add", "-N", "intended")
    git(repo, "rm", "-q", "--cached", "f")
    shutil.rmtree(repo / "sub")
    lay(repo, {"sub": "a file now"})
    (repo / "kept.txt").unlink()
    lay(repo, {"kept.txt/below": "a folder now"})


@posix_only
def test_snapshot_has_files_as_on_disk_and_touches_nothing_else(repo, tmp_path):
    lay(repo, {".gitignore": "*.log\n", "a.log": "ignored", "stashed": "stashed"})
    git(repo, "add", "stashed")
    git(repo, "stash", "-q")
    make_changes(repo)
    listed, files = status(repo), on_disk(repo)
    for name in ("pre-commit", "post-commit", "post-index-change", "reference-transaction"):
        hook(repo, name, f"touch '{tmp_path}/sprung'")
    before = private(repo), (repo / "a").stat().st_mtime_ns
    found = take(repo)
    assert (private(repo), (repo / "a").stat().st_mtime_ns) == before
    opened(repo).tag("gsd/x", found.commit)
    assert not (tmp_path / "sprung").exists()
    assert content(repo, found.commit) == without_logs(files)
    assert (status(repo), on_disk(repo)) == (listed, files)
    assert git(repo, "stash", "list") != ""
    parent = git(repo, "rev-parse", f"{found.commit}^")
    assert parent == found.head == git(repo, "rev-parse", "HEAD")


def test_snapshot_of_unchanged_files_is_head_but_never_another_snapshot(repo):
    head = git(repo, "rev-parse", "HEAD")
    os.utime(repo / "kept.txt", (1, 1))
    assert take(repo) == (head, head, {})
    lay(repo, {"kept.txt": "changed"})
    first = take(repo)
    assert first.commit != head
    git(repo, "reset", "-q", "--hard", first.commit)
    second = take(repo)
    assert git(repo, "rev-parse", f"{second.commit}^") == first.commit
    (described,) = opened(repo).commits("--no-walk", second.commit)
    assert is_snapshot(described)
    commit(repo, "more")
    git(repo, "commit", "-q", "--allow-empty", "-m", described.subject)
    assert not is_snapshot(opened(repo).commits("--no-walk", "HEAD")[0])


@posix_only
def test_snapshot_includes_odd_paths_and_leaves_out_gsd_and_views(repo):
    git(repo, "config", "core.quotePath", "true")
    lay(repo, {".gsd/plan.md": "committed", "sub/.gsd/config.toml": "committed"})
    git(repo, "add", "-f", ".")
    git(repo, "commit", "-qm", "plan")
    lay(repo, {".gsd/plan.md": "edited", ".gsd/new": "new", ".loop/PROGRESS.md": "a view"})
    git(repo, "add", "-f", ".gsd/plan.md", ".gsd/new")
    git(repo, "rm", "-q", "--cached", "sub/.gsd/config.toml")
    assert take(repo).commit == git(repo, "rev-parse", "HEAD")
    odd = [
        " blank ",
        "-dash",
        "--",
        "new\nline",
        '"quoted"',
        "tab\t",
        "*",
        ":(top)",
        "a\\b",
        "\udcff",
    ]
    lay(repo, dict.fromkeys(odd, "odd"))
    found = content(repo, take(repo).commit)
    assert {*odd} <= {*found}
    assert found[".gsd/plan.md"] == "100644 committed"
    assert {path for path in found if "gsd" in path or "loop" in path} == {
        ".gsd/plan.md", "sub/.gsd/config.toml",
    }  # fmt: skip


@posix_only
def test_snapshot_leaves_out_large_and_unreadable_and_nested_and_says_so(repo):
    new_repository(repo / "nested")
    lay(repo, {"big": "", "large": "", "tracked": "small"})
    git(repo, "add", "tracked")
    for name, size in (("big", LARGEST + 1), ("large", LARGEST), ("tracked", LARGEST + 1)):
        os.truncate(repo / name, size)
    os.mkfifo(repo / "pipe")
    found = take(repo)
    assert found.left_out == {"big": "over 10 MB", "nested": "a repository of its own"}
    assert found.omission == "big (over 10 MB), nested (a repository of its own)"
    names = git(repo, "ls-tree", "-r", "--name-only", found.commit).split()
    assert names == ["kept.txt", "large", "sub/deep.txt", "tracked"]


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_snapshot_has_edits_hidden_from_git_status_and_not_sparse_files(repo, flag):
    head = git(repo, "rev-parse", "HEAD")
    git(repo, "sparse-checkout", "set", "--no-cone", "/kept.txt")
    assert take(repo).commit == head
    git(repo, "sparse-checkout", "disable")
    git(repo, "update-index", flag, "kept.txt")
    lay(repo, {"kept.txt": "hidden edit"})
    found = take(repo)
    assert content(repo, found.commit)["kept.txt"] == "100644 hidden edit"
    (repo / "kept.txt").unlink()
    if flag == "--assume-unchanged":
        assert "kept.txt" not in content(repo, take(repo).commit)
    lay(repo, {"kept.txt": "another"})
    restore(repo, found.commit)
    assert (repo / "kept.txt").read_text() == "hidden edit"


def test_snapshot_of_conflict_is_the_current_content(repo):
    git(repo, "checkout", "-qb", "theirs")
    commit(repo, "kept.txt", "theirs")
    git(repo, "checkout", "-q", "-")
    commit(repo, "kept.txt", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "theirs")
    lay(repo, {"kept.txt": "half resolved"})
    assert content(repo, take(repo).commit)["kept.txt"] == "100644 half resolved"
    assert "UU kept.txt" in status(repo)


def test_snapshot_of_submodule_is_its_commit_and_restoring_leaves_it(repo, tmp_path):
    origin = new_repository(tmp_path / "origin")
    git(repo, "submodule", "--quiet", "add", str(origin), "module")
    git(repo, "commit", "-qm", "module")
    head = git(repo, "rev-parse", "HEAD")
    lay(repo, {"module/kept.txt": "not committed", "new": "new"})
    first = take(repo)
    assert "module" not in files_of(repo, first.commit)
    second = commit(repo / "module", "more")
    found = take(repo)
    assert git(repo, "rev-parse", f"{found.commit}:module") == second
    assert restoration(opened(repo), found, head).submodules == ["module"]
    restore(repo, head)
    assert not (repo / "new").exists()
    assert git(repo / "module", "rev-parse", "HEAD") == second
    assert (repo / "module" / "kept.txt").read_text() == "not committed"


def test_snapshot_works_in_linked_work_tree_detached_split_and_with_sha256(repo, tmp_path):
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    sha256 = new_repository(tmp_path / "sha256", "--object-format=sha256")
    split = new_repository(tmp_path / "split")
    git(split, "update-index", "--split-index")
    names = sorted(it.name for it in (split / ".git").iterdir())
    for place in (tmp_path / "linked", sha256, split):
        lay(place, {"new": "new", "kept.txt": "changed"})
        before = status(place)
        found = take(place)
        assert {*content(place, found.commit)} == {"kept.txt", "new", "sub/deep.txt"}
        restore(place, found.head)
        assert (status(place), (place / "kept.txt").read_text()) == ([], "kept\n")
        restore(place, found.commit)
        assert status(place) == before
    assert sorted(it.name for it in (split / ".git").iterdir()) == names


def test_snapshot_needs_no_identity_no_signature_and_no_index(repo, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        for part in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{part}")
    for setting in ("user.useConfigOnly", "commit.gpgSign", "core.safecrlf"):
        git(repo, "config", setting, "true")
    git(repo, "config", "gpg.program", "false")
    lay(repo, {".gitattributes": "* text=auto eol=lf\n", "kept.txt": "kept\r\n"})
    found = take(repo)
    assert git(repo, "log", "-1", "--format=%an %ae", found.commit) == "gsd-fsm gsd-fsm@localhost"
    (repo / ".git" / "index").unlink()
    assert content(repo, take(repo).commit) == content(repo, found.commit)


@posix_only
def test_snapshot_survives_files_that_vanish_and_reports_a_failing_filter(repo):
    lay(repo, {".gitattributes": "a filter=thief\n", "a": "", "b": "b", "c": "c"})
    git(repo, "config", "filter.thief.clean", "rm -f b; cat")
    found = content(repo, take(repo).commit)
    assert ("b" in found, found["c"]) == (False, "100644 c")
    git(repo, "config", "filter.thief.clean", "false")
    git(repo, "config", "filter.thief.required", "true")
    lay(repo, {"a": "again"})
    with pytest.raises(Refused, match="clean filter 'thief' failed"):
        take(repo)


class Walk:
    """Random changes of files, index and history."""

    paths = (
        "a",
        "b",
        "folder",
        "folder/x",
        "folder/y",
        "folder/deeper/z",
        "ü ",
        "x.log",
        "folder/y.log",
    )

    def __init__(self, repo: Path, seed: int) -> None:
        self.repo, self.random = repo, random.Random(seed)

    def step(self) -> None:
        path = self.random.choice(self.paths)
        place = self.repo / path
        change = self.random.choice((self.write, self.write, self.link, self.remove, self.stage))
        if change == self.stage:
            change(path)
        elif all(not it.is_symlink() and not it.is_file() for it in place.parents):
            change(place)

    def write(self, place: Path) -> None:
        self.remove(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"text {self.random.randrange(9)}")
        place.chmod(self.random.choice((0o644, 0o755)))

    def link(self, place: Path) -> None:
        self.remove(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(self.random.choice(("a", "folder", "nowhere")))

    def remove(self, place: Path) -> None:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def stage(self, path: str) -> None:
        command = self.random.choice((
            ("add", "-A"), ("add", "-N", "--", path), ("rm", "-qr", "--cached", "--", path),
            ("commit", "-qm", "more"), ("commit", "-qam", "more"), ("reset", "-q"),
        ))  # fmt: skip
        with contextlib.suppress(subprocess.CalledProcessError):
            git(self.repo, *command)


@posix_only
@pytest.mark.parametrize("seed", range(1))
def test_restore_brings_every_file_back_and_leaves_ignored_ones(repo, seed):
    lay(repo, {".gitignore": "*.log\n"})
    walk, saved = Walk(repo, seed), []
    for _ in range(12):
        for _ in range(walk.random.randrange(1, 12)):
            walk.step()
        now = on_disk(repo)
        saved.append((take(repo).commit, without_logs(now)))
        target, files = walk.random.choice(saved)
        index = (repo / ".git" / "index").read_bytes()
        if restoration(opened(repo), take(repo), target).in_the_way:
            with pytest.raises(Refused, match=r"no tag has them: .* \(ignored\)"):
                restore(repo, target)
            assert on_disk(repo) == now
            continue
        restore(repo, target)
        assert without_logs(on_disk(repo)) == files
        assert on_disk(repo).items() >= {it for it in now.items() if it[0].endswith(".log")}
        assert (repo / ".git" / "index").read_bytes() == index


def without_logs(files: dict[str, str]) -> dict[str, str]:
    return {path: it for path, it in files.items() if not path.endswith(".log")}


def test_restore_refuses_to_lose_later_changes_and_can_be_repeated(repo):
    kept = take(repo).commit
    lay(repo, {"kept.txt": "second", "new": "new"})
    second = take(repo).commit
    for name, text in (("kept.txt", "third"), ("mine", "mine")):
        lay(repo, {name: text})
        before = on_disk(repo)
        with pytest.raises(Refused, match=f"uncommitted changes: {name}"):
            restore_files(opened(repo), second, kept)
        assert on_disk(repo) == before
        (repo / "mine").unlink(missing_ok=True)
        lay(repo, {"kept.txt": "kept\n"})  # as if restoring had been interrupted
    restore_files(opened(repo), second, kept)
    restore_files(opened(repo), second, kept)
    assert status(repo) == []


@pytest.mark.parametrize("precious", ["way", "way/x.log"])
def test_restore_never_overwrites_ignored_or_large_file(repo, precious):
    lay(repo, {"way": "way"})
    target = take(repo).commit
    (repo / "way").unlink()
    lay(repo, {".gitignore": "way\n*.log\n", precious: "precious"})
    found = restoration(opened(repo), take(repo), target)
    assert found.in_the_way == ["way (ignored)"]
    with pytest.raises(Refused, match="no tag has them: way"):
        restore(repo, target)
    assert (repo / precious).read_text() == "precious"
    if precious == "way":
        (repo / ".gitignore").unlink()
        os.truncate(repo / "way", LARGEST + 1)
        assert restoration(opened(repo), take(repo), target).in_the_way == ["way (over 10 MB)"]


def test_restore_takes_files_of_gsd_along_only_if_they_are_committed(repo):
    first = commit(repo, "first")
    lay(repo, {".gsd/plan.md": "one", ".gsd/config.toml": "one", ".gsd/other": "one"})
    git(repo, "add", "-f", ".gsd")
    git(repo, "commit", "-qm", "plan")
    second = git(repo, "rev-parse", "HEAD")
    lay(repo, {".gsd/config.toml": "edited"})
    restore(repo, first)
    assert on_disk(repo / ".gsd") == {"config.toml": "100644 edited"}
    lay(repo, {".gsd/plan.md": "untracked"})
    git(repo, "reset", "-q", first)
    restore(repo, second)
    assert on_disk(repo / ".gsd") == {
        "plan.md": "100644 untracked", "config.toml": "100644 edited", "other": "100644 one",
    }  # fmt: skip
