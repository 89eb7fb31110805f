"""Ask and change the git repository of a project; refusals quote git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.git.run import (
    ALL_FACTS,
    WITHOUT_HOOKS,
    Done,
    act,
    find_work_tree,
    output,
    read,
    remedy,
)

COMMIT_ID = re.compile("[0-9a-fA-F]{4,64}")
NO_IDENTITY = re.compile(
    "(Author|Committer) identity unknown|empty ident name|name consists only of disallowed"
    "|unable to auto-detect (email|name)|no (email|name) was given and auto-detection is disabled"
)
HEADS = "refs/heads/"
UPSTREAM = "@{upstream}"
STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
UNTRACKED = "??"
COMMIT = re.compile(r"(\w+) (\d+) \(([\w ]*)\) (.*)", re.DOTALL)
SUBMODULE, NOTHING = "160000", "000000"  # modes


class Commit(NamedTuple):
    id: str
    seconds: int
    parents: tuple[str, ...]
    subject: str


class Change(NamedTuple):
    """The difference between two states of a path: git's letter for it, modes and ids."""

    path: str
    status: str
    old_mode: str
    mode: str
    old_id: str
    id: str

    @classmethod
    def parsed(cls, facts: bytes, path: bytes) -> Change:
        """Return the change that a raw record of git describes."""
        old_mode, mode, old_id, new_id, status = facts.decode("ascii").removeprefix(":").split(" ")
        return cls(os.fsdecode(path), status, old_mode, mode, old_id, new_id)

    @property
    def is_submodule(self) -> bool:
        return SUBMODULE in (self.old_mode, self.mode)


class Repository(NamedTuple):
    """The git work tree that contains a project."""

    program: str
    top: Path
    project: Path
    algorithm: str

    @classmethod
    def around(cls, project: Path) -> Repository | None:
        """Return the repository of this project; None without git or a work tree."""
        found = find_work_tree(project, refused)
        return cls(found.program, found.top, project, found.algorithm) if found else None

    # reading

    def branch(self) -> str | None:
        """Return the current branch, even without commits; None if HEAD is detached."""
        found = self._maybe("symbolic-ref", "-q", "HEAD")
        return found.removeprefix(HEADS) if found else None

    def head(self) -> str | None:
        """Return the commit of HEAD; None before the first commit."""
        return self._maybe("rev-parse", "-q", "--verify", "HEAD^{commit}")

    def branch_commit(self, name: str) -> str | None:
        """Return the commit of this branch, locally or at a remote; None if it does not exist."""
        if not self.is_branch_name(name):
            return None
        places = (HEADS + name, "refs/remotes/*/" + name)
        refs = self._read("for-each-ref", "--format=%(objectname) %(refname)", *places)
        found = re.search(
            f"^(\\w+) refs/(heads|remotes/[^/]+)/{re.escape(name)}$", refs, re.MULTILINE
        )
        return found[1] if found else None

    def content(self, commit: str, path: Path | str) -> bytes | None:
        """Return a file of this commit, by its path in the project; None if missing."""
        place = self._place(str(path))
        done = self.look("cat-file", "blob", f"{commit}:{place}") if place else None
        return done.stdout if done is not None and done.returncode == 0 else None

    def is_branch_name(self, name: str) -> bool:
        """Return whether git accepts this name for a branch."""
        if "\0" in name or clean(name) != name or name.startswith("-") or name == "HEAD":
            return False
        return self.look("check-ref-format", HEADS + name).returncode == 0

    def has_commit(self, sha: str) -> bool:
        return bool(COMMIT_ID.fullmatch(sha)) and self.resolved(sha) is not None

    def resolved(self, name: str) -> str | None:
        """Return the commit with this name; None if it does not exist."""
        if name.startswith("-") or not name.strip() or "\0" in name:
            return None
        done = self.look("rev-parse", "-q", "--verify", name + "^{commit}")
        return os.fsdecode(done.stdout).strip("\n") if done.returncode == 0 else None

    def touched(self, before: str, after: str, paths: Iterable[Path | str]) -> bool:
        """Return whether one of these paths in the project differs between two commits."""
        places, changed = self._places(paths), self.changes(before, after)
        return any(
            it.path == place or it.path.startswith(place + "/")
            for it in changed
            for place in places
        )

    def contains(self, sha: str, later: str = "HEAD") -> bool:
        """Return whether `later` is this commit or contains it."""
        if not COMMIT_ID.fullmatch(sha):
            return False
        return self.look("merge-base", "--is-ancestor", sha, later).returncode == 0

    def contained(self, shas: Iterable[str]) -> set[str]:
        """Return the commits among these that HEAD contains."""
        asked = [sha for sha in dict.fromkeys(shas) if COMMIT_ID.fullmatch(sha)]
        if not asked:
            return set()
        names = "".join(it + "^{commit}\n" for it in ("HEAD", *asked)).encode("ascii")
        batch = self.look("cat-file", "--batch-check=%(objectname)", stdin=names)
        head, *ids = _text(batch).splitlines()
        unknown = (" missing", " ambiguous")
        if head.endswith(unknown):
            return set()  # there is no commit yet
        known = {
            sha: found for sha, found in zip(asked, ids, strict=True) if not found.endswith(unknown)
        }
        revisions = "".join(f"{it}\n" for it in ("^HEAD", *known.values())).encode("ascii")
        beyond = set(_text(self.look("rev-list", "--stdin", stdin=revisions)).split())
        return {sha for sha, found in known.items() if found not in beyond}

    def uncommitted(self, paths: Iterable[Path | str]) -> list[str]:
        """Return the paths among these, in the project, that are changed or untracked."""
        return list(self._changed(paths))

    def tags(self, pattern: str) -> dict[str, str]:
        """Return the commits of all tags that match, oldest first."""
        form = "--format=%(refname) %(objecttype) %(objectname) %(*objectname)"
        sort = "--sort=creatordate"
        found = self._read("for-each-ref", form, sort, "refs/tags/" + pattern)
        tags = {}
        for line in found.splitlines():
            name, kind, sha, peeled = line.split(" ")
            if kind in ("commit", "tag"):
                tags[name.removeprefix("refs/tags/")] = peeled or sha
        return tags

    def commits(self, *chosen: str) -> list[Commit]:
        """Return the commits selected by these arguments of `git rev-list`."""
        # Not `git log`: the repository's settings for it may start a program.
        form = ("--format=%H %ct (%P) %s", "--encoding=UTF-8")
        lines = self._read("rev-list", *form, *chosen, "--").split("\n")
        parts = (found.groups() for line in lines[1::2] if (found := COMMIT.fullmatch(line)))
        return [
            Commit(sha, int(seconds), tuple(parents.split()), clean(subject))
            for sha, seconds, parents, subject in parts
        ]

    def count(self, chosen: str) -> int:
        return int(self._read("rev-list", "--count", chosen, "--"))

    def changes(self, before: str, after: str) -> list[Change]:
        """Return the differences between two commits or trees."""
        if before == after:
            return []
        options = ("-r", "-z", "--raw", "--no-renames")
        done = self.look("diff-tree", *options, before, after, "--")
        fields = output(done, refused).split(b"\0")[:-1]
        return [Change.parsed(*it) for it in zip(fields[::2], fields[1::2], strict=True)]

    def states(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the two letters of `git status` for those of these paths that it lists."""
        return self._status(*paths)

    def staged_only(self) -> list[str]:
        """Return the paths whose staged content is neither in HEAD nor in the file."""
        return [
            path for path, state in self._status().items() if "?" not in state and " " not in state
        ]

    def _changed(self, paths: Iterable[Path | str]) -> dict[str, str]:
        """Return the states of the paths among these that are changed or untracked."""
        wanted = self._places(paths)
        found = self._status(*wanted) if wanted else {}
        return {path: state for path, state in found.items() if not path.endswith("/")}

    def _status(self, *paths: str) -> dict[str, str]:
        limit = ("--ignore-submodules=dirty", "--", *paths)
        records = self._read("--literal-pathspecs", *STATUS, *limit).split("\0")[:-1]
        # A file removed only from the index has two records; the later one counts.
        return {record[3:]: record[:2] for record in records}

    # writing

    def switch(self, name: str, *, create: bool) -> None:
        """Check out a branch; keep local changes, or raise Refused."""
        if not self.is_branch_name(name):
            raise Refused(f"not a valid branch name: {name!r}", "Choose another name.")
        if create:
            self._checkout("-b", name)
        elif self.branch_commit(name):
            self._checkout("--guess", name)
        else:
            raise Refused(f"branch {name} does not exist", f"Run: git checkout -b {name}")

    def move_branch(self, commit: str) -> None:
        """Point branch and index to a commit, and leave the files as they are."""
        self.require_movable()
        self.act(*WITHOUT_HOOKS, "reset", "-q", "--mixed", commit, "--")

    def require_movable(self) -> None:
        """Raise Refused unless a branch is checked out and no merge is in progress."""
        if self.branch() is None:
            raise Refused("no branch is checked out (detached HEAD)", "Run: git checkout BRANCH")
        if self._maybe("rev-parse", "-q", "--verify", "MERGE_HEAD"):
            raise Refused(
                "a merge is in progress", "Run: git merge --continue, or: git merge --abort"
            )

    def _checkout(self, *arguments: str) -> None:
        self.act("checkout", "-q", "--no-overwrite-ignore", *arguments, "--")

    def tag(self, name: str, commit: str | None = None) -> str | None:
        """Set or move a lightweight tag on this commit, by default HEAD; return the commit."""
        tagged = commit or self.head()
        if tagged is not None:
            self.act(*WITHOUT_HOOKS, "tag", "--no-sign", "-f", name, tagged)
        return tagged

    def set_ref(self, name: str, commit: str) -> None:
        """Point a reference that is neither branch nor tag to this commit."""
        self.act(*WITHOUT_HOOKS, "update-ref", name, commit)

    def drop_ref(self, name: str) -> None:
        self.act(*WITHOUT_HOOKS, "update-ref", "-d", name)

    def commit(self, paths: Iterable[Path | str], message: str) -> str | None:
        """Commit exactly these paths of the project; return None if none of them changed.

        Paths that are ignored, missing or outside the work tree are skipped, as is the project as a
        whole. Other staged changes stay staged. If git refuses, the index is unchanged.
        """
        changed = self._changed(paths)
        if not changed:
            return None
        new = [path for path, state in changed.items() if state == UNTRACKED]
        chosen = ("--only", *_literally(changed))
        text = message.encode("utf-8", "replace")
        before = self.head()
        try:
            if new:
                self.act("add", "--intent-to-add", *_literally(new))
            if self.look("commit", "--dry-run", "--porcelain", *chosen).returncode != 1:
                encoding = ("-c", "i18n.commitEncoding=UTF-8")
                self.act(*ALL_FACTS, *encoding, "commit", "-qF-", *chosen, stdin=text)
        finally:
            after = self.head()
            if new and after == before:
                names = b"".join(os.fsencode(path) + b"\0" for path in new)
                forget = ("update-index", "-z", "--force-remove", "--stdin")
                act(self.program, self.top, *forget, stdin=names)
        return None if after == before else after

    def _places(self, paths: Iterable[Path | str]) -> list[str]:
        return sorted({place for path in paths if (place := self._place(str(path)))})

    def _place(self, path: str) -> str | None:
        """Return the path relative to the work tree; None if it is outside or not a path."""
        project, top = Path(os.path.realpath(self.project)), Path(os.path.realpath(self.top))
        whole = project / path
        try:
            is_path = b"\0" not in os.fsencode(path)
        except UnicodeEncodeError:
            is_path = False
        if not is_path or whole.name == os.pardir:
            return None
        # Resolve links in the parent, since git does not follow them; the last part may be a link.
        real = Path(os.path.realpath(whole.parent)) / whole.name
        if real in (project, top) or not real.is_relative_to(top):
            return None
        return real.relative_to(top).as_posix()

    # running git

    def look(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> Done:
        """Run git to read, or to write only objects and this index; see `read`."""
        return read(self.program, self.top, *arguments, stdin=stdin, index=index)

    def _read(self, *arguments: str) -> str:
        return _text(self.look(*arguments))

    def _maybe(self, *arguments: str) -> str | None:
        """Return the line that git prints; None if it exits with 1."""
        done = self.look(*arguments)
        return None if done.returncode == 1 else _text(done).strip("\n")

    def act(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> None:
        """Run git to write, as `act` of `run` does; raise Refused if it fails."""
        _text(act(self.program, self.top, *arguments, stdin=stdin, index=index))


def _literally(paths: Iterable[str]) -> tuple[str, ...]:
    # Not --literal-pathspecs: the user's hooks would inherit it.
    return ("--", *(f":(top,literal){path}" for path in paths))


def _text(done: Done) -> str:
    return os.fsdecode(output(done, refused))


def refused(message: str) -> Refused:
    if NO_IDENTITY.search(message):
        return Refused(
            "git has no identity for commits: user.name and user.email are not set",
            "Run: git config user.name NAME && git config user.email ADDRESS",
        )
    return Refused(f"git refused: {message}", remedy(message))
