"""The digest of a work tree changes with its content only; trouble is reported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gsd_fsm.core.errors import CheckFailed
from gsd_fsm.git.snapshots import take_snapshot
from gsd_fsm.git.tree import read_content
from tests.support.repositories import (
    content_tree,
    files_of,
    git,
    new_repository,
    opened,
    posix_only,
    without_privileges,
)
from tests.support.verification import lay


def assert_staging_and_committing_keep(repo: Path) -> str:
    before = content_tree(repo)
    git(repo, "add", "-A")
    assert content_tree(repo) == before
    git(repo, "commit", "-qm", "more", "--allow-empty")
    assert content_tree(repo) == before
    return before


def test_content_tree_changes_with_content_and_back(repo):
    before = content_tree(repo)
    for change in (
        lambda: (repo / "kept.txt").write_bytes(b"Kept\n"),
        lambda: (repo / "other.txt").write_bytes(b""),
        (repo / "kept.txt").unlink,
        lambda: (repo / "kept.txt").rename(repo / "other.txt"),
    ):
        change()
        assert assert_staging_and_committing_keep(repo) != before
        git(repo, "rm", "-rq", "--cached", ".")
        (repo / "other.txt").unlink(missing_ok=True)
        (repo / "kept.txt").write_bytes(b"kept\n")
        assert content_tree(repo) == before


def test_content_tree_is_a_digest_of_names_and_content_and_not_of_times(repo):
    before = content_tree(repo)
    assert re.fullmatch("[0-9a-f]{16}", before)
    os.utime(repo / "kept.txt", (1, 1))
    assert content_tree(repo / "sub") == content_tree(repo) == before
    (repo / "kept.txt").write_bytes(b"deep\n")
    (repo / "sub" / "deep.txt").write_bytes(b"kept\n")
    assert content_tree(repo) != before


def test_content_tree_leaves_out_ignored_files_and_own_gsd(repo):
    (repo / ".gitignore").write_text("*.log\n")
    before = content_tree(repo)
    lay(repo, dict.fromkeys(("x.log", ".gsd/journal", ".gsd/deeper/x.py"), "noise"))
    new_repository(repo / ".gsd" / "nested")
    assert assert_staging_and_committing_keep(repo) == before
    (repo / ".gsd" / "journal").write_text("more")
    among_plans = ("state.json", "state.json.before-lp-1", "plans/phase-1/VERIFICATION.md",
                   "plans/phase-1/verification.json")  # fmt: skip
    lay(repo, {f"sub/.opti-gsd/{name}": "noise" for name in among_plans})
    assert content_tree(repo) == before
    lay(repo, {"sub/.opti-gsd/plans/phase-1/plan.md": "counts"})
    assert content_tree(repo) != before
    (repo / "sub/.opti-gsd/plans/phase-1/plan.md").unlink()
    assert content_tree(repo) == before
    lay(repo, {"x.gsd/file": "counts"})
    assert content_tree(repo) != before


def test_content_tree_writes_nothing_to_git_directory(repo):
    lay(repo, {"new.txt": "new", "sub/deep.txt": "edited"})
    os.utime(repo / "kept.txt", (1, 1))

    def snapshot():
        places = sorted((repo / ".git").rglob("*"))
        return [(it, it.stat().st_mtime_ns, it.is_file() and it.read_bytes()) for it in places]

    before = snapshot()
    content_tree(repo)
    assert snapshot() == before


@posix_only
def test_content_tree_includes_odd_paths(repo):
    names = ["new\nline", '"quoted"', "-dash", "--", "end\r", "back\\slash\\n", "tab\t", "ü ", ":(top)",
             "*"]  # fmt: skip
    lay(repo, dict.fromkeys(names, "one"))
    first = assert_staging_and_committing_keep(repo)
    for name in names:
        (repo / name).write_text("two")
        assert content_tree(repo) != first, name
        (repo / name).write_text("one")
        assert content_tree(repo) == first, name


@posix_only
def test_content_tree_of_link_depends_on_target_text(repo, tmp_path):
    link = repo / "link"
    link.symlink_to("nowhere")
    first = assert_staging_and_committing_keep(repo)
    link.unlink()
    link.symlink_to("elsewhere")
    assert assert_staging_and_committing_keep(repo) != first
    link.unlink()
    link.write_text("nowhere")
    assert assert_staging_and_committing_keep(repo) != first
    shutil.move(repo / "sub", tmp_path / "moved")
    (repo / "sub").symlink_to(tmp_path / "moved")
    assert_staging_and_committing_keep(repo)


@posix_only
def test_content_tree_does_not_open_named_pipe(repo):
    (repo / "kept.txt").unlink()
    without = content_tree(repo)
    os.mkfifo(repo / "kept.txt")
    assert content_tree(repo) == without


@pytest.mark.parametrize("setting", ["true", "input", "false"])
def test_content_tree_with_crlf_conversion_ignores_staging(repo, setting):
    git(repo, "config", "core.autocrlf", "false")
    (repo / "blob-has-crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    assert_staging_and_committing_keep(repo)
    git(repo, "config", "core.autocrlf", setting)
    before = content_tree(repo)
    os.utime(repo / "blob-has-crlf.txt", (1, 1))
    assert content_tree(repo) == before
    (repo / "blob-has-crlf.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (repo / "new.txt").write_bytes(b"one\r\ntwo\r\n")
    (repo / "kept.txt").write_bytes(b"kept\r\nmore\r\n")
    assert assert_staging_and_committing_keep(repo) != before


def test_content_tree_leaves_out_only_names_of_gsd_fsm_in_gsd_of_other_projects(repo):
    before, below = content_tree(repo), content_tree(repo / "sub")
    ours = ("journal.jsonl", "journal.broken-1", "snapshot.json", "STOP", "STATE.md")
    lay(repo, {f"sub/.gsd/{name}": "noise" for name in ours})
    assert assert_staging_and_committing_keep(repo) == before
    for name in ("sub/.gsd/x.py", "sub/.gsd/STOP.py", "sub/.gsd/deeper/journal.jsonl"):
        lay(repo, {name: "counts"})
        assert content_tree(repo) != before, name
        assert content_tree(repo / "sub") == below, name
        (repo / name).unlink()
    new_repository(repo / "sub" / ".gsd" / "nested")
    assert content_tree(repo) != before
    assert content_tree(repo / "sub") == below


def test_content_has_files_of_submodules_and_nested_repositories_and_not_their_commits(
    repo, tmp_path
):
    origin = new_repository(tmp_path / "origin")
    git(repo, "submodule", "--quiet", "add", str(origin), "module")
    nested = new_repository(repo / "sub" / "nested")
    lay(nested, {".gitignore": "*.log\n"})
    deeper = new_repository(nested / "deeper")
    before = assert_staging_and_committing_keep(repo)
    lay(nested, {"x.log": "ignored", ".loop/PROGRESS.md": "a view"})
    git(repo, "init", "-q", "--template=", "unborn")
    assert content_tree(repo) == before
    places = (deeper, repo / "module", repo / "unborn")
    names = [f"{place.relative_to(repo).as_posix()}/kept.txt" for place in places]
    first = read_content(repo)
    lay(repo, dict.fromkeys(names, "not committed"))
    changed = read_content(repo)
    assert changed.changed_since(first) == sorted(names)
    for place in places:
        git(place, "add", "-A")
        git(place, "commit", "-qm", "second")
    assert assert_staging_and_committing_keep(repo) == changed.tree, (
        "commits in them change no file"
    )


def test_content_tree_of_submodule_that_is_not_checked_out_is_its_commit_and_stray_files(
    repo, tmp_path
):
    origin = new_repository(tmp_path / "origin")
    git(repo, "submodule", "--quiet", "add", str(origin), "module")
    checked_out = content_tree(repo)
    (repo / "module" / ".git").rename(tmp_path / "away")
    before = content_tree(repo)
    lay(repo, {"module/sub/deep.txt": "git status does not see this"})
    assert content_tree(repo) != before
    (tmp_path / "away").rename(repo / "module" / ".git")
    git(repo, "submodule", "--quiet", "deinit", "-f", "module")
    assert list((repo / "module").iterdir()) == []
    one = assert_staging_and_committing_keep(repo)
    other = git(repo, "rev-parse", "HEAD")
    git(repo, "update-index", "--cacheinfo", f"160000,{other},module")
    assert len({one, content_tree(repo), checked_out}) == 3


def test_content_of_broken_or_too_deep_repositories_is_an_error(repo, monkeypatch):
    new_repository(repo / "nested" / "deeper")
    new_repository(repo / "nested" / "deeper" / "deepest")
    monkeypatch.setattr("gsd_fsm.git.tree.DEEPEST", 2)
    assert content_tree(repo)
    monkeypatch.setattr("gsd_fsm.git.tree.DEEPEST", 1)
    with pytest.raises(CheckFailed, match="more than 1 git repositories"):
        content_tree(repo)
    git(repo / "nested" / "deeper", "config", "core.worktree", str(repo))
    with pytest.raises(CheckFailed, match="not the work tree of a git repository"):
        content_tree(repo)


@posix_only
@pytest.mark.parametrize("setting", ["true", "false"])
def test_content_tree_has_executable_bit_where_git_uses_it(repo, setting):
    git(repo, "config", "core.fileMode", setting)
    new_repository(repo / "nested")
    git(repo / "nested", "config", "core.fileMode", setting)
    (repo / "new.txt").write_text("new")
    before = content_tree(repo)
    for name in ("kept.txt", "new.txt", "nested/kept.txt"):
        (repo / name).chmod(0o755)
        assert (content_tree(repo) != before) == (setting == "true"), name
        (repo / name).chmod(0o644)
        assert content_tree(repo) == before
        (repo / name).chmod(0o755)
        before = content_tree(repo)
    assert_staging_and_committing_keep(repo)
    git(repo, "update-index", "--chmod=+x", "new.txt")
    (repo / "new.txt").write_text("edited")
    git(repo, "update-index", "--assume-unchanged", "kept.txt")
    assert_staging_and_committing_keep(repo)
    (repo / "kept.txt").chmod(0o644)
    (repo / "new.txt").unlink()
    assert_staging_and_committing_keep(repo)


@posix_only
@pytest.mark.parametrize("setting", ["core.trustctime=false", "core.checkStat=minimal"])
def test_content_tree_sees_edit_with_size_and_time_of_old_file(repo, setting):
    git(repo, "config", *setting.split("="))
    kept = repo / "kept.txt"
    os.utime(kept, (1, 1))
    git(repo, "add", "kept.txt")
    before = content_tree(repo)
    if setting == "core.trustctime=false":
        time.sleep(1.01 - time.time() % 1)  # git compares seconds
        kept.write_bytes(b"Kept\n")
    else:
        lay(repo, {"another": "Kept\n"})
        (repo / "another").rename(kept)
    os.utime(kept, (1, 1))
    assert git(repo, "status", "--porcelain") == ""
    assert content_tree(repo) != before
    repository = opened(repo)
    assert files_of(repo, take_snapshot(repository, repository.head(), "").commit) == ["kept.txt"]
    assert repository.commit(["kept.txt"], "edited") is not None


def test_content_tree_of_unmerged_file_is_its_current_content(repo):
    git(repo, "checkout", "-qb", "theirs")
    lay(repo, {"kept.txt": "theirs", "sub/deep.txt": "theirs"})
    git(repo, "commit", "-qam", "theirs")
    git(repo, "checkout", "-q", "-")
    (repo / "kept.txt").write_text("ours")
    (repo / "sub" / "deep.txt").unlink()
    git(repo, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "theirs")
    conflicted = content_tree(repo)
    (repo / "kept.txt").write_text("resolved")
    assert content_tree(repo) != conflicted
    (repo / "sub" / "deep.txt").unlink()
    assert_staging_and_committing_keep(repo)


def test_content_tree_of_intent_to_add_equals_untracked(repo):
    (repo / "new.txt").write_text("new")
    before = content_tree(repo)
    git(repo, "add", "-N", "new.txt")
    assert content_tree(repo) == before
    (repo / "new.txt").unlink()
    assert content_tree(repo) != before


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_content_tree_sees_edits_hidden_from_git_status_but_not_sparse_files(repo, flag):
    before = content_tree(repo)
    git(repo, "sparse-checkout", "set", "--no-cone", "/kept.txt")
    assert not (repo / "sub").exists()
    assert content_tree(repo) == before
    git(repo, "sparse-checkout", "disable")
    git(repo, "update-index", flag, "kept.txt")
    assert content_tree(repo) == before
    (repo / "kept.txt").write_text("hidden edit")
    assert git(repo, "status", "--porcelain") == ""
    assert content_tree(repo) != before


def test_content_tree_with_sha256_ids_ignores_staging(tmp_path):
    repo = new_repository(tmp_path / "repo", "--object-format=sha256")
    (repo / "new.txt").write_text("new")
    if sys.platform != "win32":
        (repo / "link").symlink_to("new.txt")
    assert_staging_and_committing_keep(repo)


def test_content_tree_of_linked_work_tree_is_its_own(repo, tmp_path):
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert content_tree(tmp_path / "linked") == content_tree(repo)
    (tmp_path / "linked" / "kept.txt").write_text("edited")
    assert content_tree(tmp_path / "linked") != content_tree(repo)


@posix_only
def test_content_tree_leaves_out_file_that_vanishes(repo):
    # git hashes in the order of names: the filter of the first removes the second
    lay(repo, {".gitattributes": "a.txt filter=thief\n", "a.txt": "", "b.txt": "b", "c.txt": "c"})
    git(repo, "config", "filter.thief.clean", "rm -f b.txt; cat")
    stolen = content_tree(repo)
    assert not (repo / "b.txt").exists()
    assert content_tree(repo) == stolen
    (repo / "c.txt").write_text("still seen")
    assert content_tree(repo) != stolen


@posix_only
def test_content_tree_accepts_unreadable_file():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        repo = new_repository(Path(folder) / "repo")
        (repo / "secret.txt").write_text("secret")
        readable = content_tree(repo)
        (repo / "secret.txt").chmod(0)
        with without_privileges(repo):
            unreadable = content_tree(repo)
    assert unreadable not in (readable, None)


@posix_only
def test_content_tree_reports_failing_filter(repo):
    lay(repo, {".gitattributes": "new.txt filter=broken\n", "new.txt": "new"})
    git(repo, "config", "filter.broken.clean", "false")
    git(repo, "config", "filter.broken.required", "true")
    with pytest.raises(CheckFailed, match="clean filter 'broken' failed"):
        content_tree(repo)


def test_content_tree_of_empty_repository_exists_and_of_a_broken_one_is_an_error(repo, tmp_path):
    (repo / ".git" / "index").write_bytes(b"no index at all, and long enough to be read")
    with pytest.raises(CheckFailed, match="index"):
        content_tree(repo)
    empty = tmp_path / "empty"
    git(tmp_path, "init", "-q", "--template=", "empty")
    assert content_tree(empty)
    shutil.rmtree(empty / ".git")
    (empty / ".git").write_text("gitdir: /no/such/place\n")
    with pytest.raises(CheckFailed, match="not a git repository"):
        content_tree(empty)


def test_content_tree_leaves_out_other_work_trees_of_the_repository(repo):
    before = content_tree(repo)
    git(repo, "worktree", "add", "-q", "-b", "side", "agents/one")
    (repo / "agents" / "one" / "kept.txt").write_bytes(b"changed by another agent\n")
    assert content_tree(repo) == before
    (repo / "agents" / "two.txt").write_bytes(b"")
    assert content_tree(repo) != before
