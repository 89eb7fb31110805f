"""A git repository as a loop sees it: every answer is git's own, every refusal in git's words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gsd_fsm.core.errors import Refused
from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.core.views.loop_json import LOOP_FILES
from gsd_fsm.git.run import NO_WORK_TREE, Done, act, git_program, read, words

COMMIT_ID = re.compile("[0-9a-fA-F]{4,64}")
NO_IDENTITY = re.compile(
    "(Author|Committer) identity unknown|empty ident name|name consists only of disallowed"
    "|unable to auto-detect (email|name)|no (email|name) was given and auto-detection is disabled"
)
OUR_VIEWS = (
    "/.gsd/.gitignore",
    "/.gsd/STATE.md",
    *(f"/.loop/{name}" for name, _ in LOOP_FILES.values()),
)
HEADS = "refs/heads/"
STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
LOOK = "see what 'git status' says there"
UNTRACKED = "??"


class Commit(NamedTuple):
    id: str
    seconds: int
    subject: str


class Repository(NamedTuple):
    """The work tree that holds a project."""

    program: str
    top: Path
    project: Path

    @classmethod
    def around(cls, project: Path) -> Repository | None:
        """The repository of this project; None without git, without a work tree, or in a bare one."""
        program = git_program()
        if program is None:
            return None
        done = read(program, project, "rev-parse", "--show-toplevel")
        if done.returncode and NO_WORK_TREE.search(done.stderr):
            return None
        top = _text(done).removesuffix("\n")
        return cls(program, Path(top), project)

    # looking

    def branch(self) -> str | None:
        """The branch that is checked out, born or not; None for a detached HEAD."""
        found = self._maybe("symbolic-ref", "-q", "HEAD")
        return found.removeprefix(HEADS) if found else None

    def head(self) -> str | None:
        """The commit that is checked out; None before the first one."""
        return self._maybe("rev-parse", "-q", "--verify", "HEAD^{commit}")

    def has_branch(self, name: str) -> bool:
        """Return whether this branch exists, here or at a remote, so that `switch` need not create it."""
        return self.branch_commit(name) is not None

    def branch_commit(self, name: str) -> str | None:
        """Return the commit of this branch, here or else at a remote; None if it does not exist."""
        if not self.is_branch_name(name):
            return None
        places = (HEADS + name, "refs/remotes/*/" + name)
        refs = self._read("for-each-ref", "--format=%(objectname) %(refname)", *places)
        found = re.search(
            f"^(\\w+) refs/(heads|remotes/[^/]+)/{re.escape(name)}$", refs, re.MULTILINE
        )
        return found[1] if found else None

    def content(self, commit: str, path: Path | str) -> bytes | None:
        """Return a file, relative to the project, as this commit has it; None if it has none."""
        place = self._place(str(path))
        done = self._look("cat-file", "blob", f"{commit}:{place}") if place else None
        return done.stdout if done is not None and done.returncode == 0 else None

    def is_branch_name(self, name: str) -> bool:
        """Whether git would let a branch have this name."""
        if "\0" in name or clean(name) != name or name.startswith("-") or name == "HEAD":
            return False
        return self._look("check-ref-format", HEADS + name).returncode == 0

    def has_commit(self, sha: str) -> bool:
        known = COMMIT_ID.fullmatch(sha)
        return bool(known) and self._look("cat-file", "-e", sha + "^{commit}").returncode == 0

    def resolved(self, name: str) -> str | None:
        """The commit that this name means; None if there is none."""
        if name.startswith("-") or not name.strip() or "\0" in name:
            return None
        done = self._look("rev-parse", "-q", "--verify", name + "^{commit}")
        return _text(done).strip("\n") if done.returncode == 0 else None

    def touched(self, before: str, after: str, paths: Iterable[Path | str]) -> bool:
        """Whether one of these paths, relative to the project, differs between two commits."""
        places = [place for path in paths if (place := self._place(str(path)))]
        options = ("-r", "-z", "--name-only", "--no-renames")
        changed = self._read("diff-tree", *options, before, after, "--").split("\0")
        return any(it == place or it.startswith(place + "/") for it in changed for place in places)

    def contains(self, sha: str) -> bool:
        """Whether this commit is part of what is checked out."""
        return self.is_within(sha, "HEAD")

    def is_within(self, sha: str, later: str) -> bool:
        """Whether one commit is the other, or lies behind it."""
        if not COMMIT_ID.fullmatch(sha):
            return False
        return self._look("merge-base", "--is-ancestor", sha, later).returncode == 0

    def contained(self, shas: Iterable[str]) -> set[str]:
        """Return those of these commits that are part of HEAD."""
        asked = [sha for sha in dict.fromkeys(shas) if COMMIT_ID.fullmatch(sha)]
        if not asked:
            return set()
        names = "".join(sha + "^{commit}\n" for sha in asked).encode("ascii")
        batch = self._look("cat-file", "--batch-check=%(objectname)", stdin=names)
        known = {
            sha: found
            for sha, found in zip(asked, _text(batch).splitlines(), strict=True)
            if not found.endswith((" missing", " ambiguous"))
        }
        revisions = "".join(f"{it}\n" for it in ("^HEAD", *known.values())).encode("ascii")
        beyond = set(_text(self._look("rev-list", "--stdin", stdin=revisions)).split())
        return {sha for sha, found in known.items() if found not in beyond}

    def uncommitted(self, paths: Iterable[Path | str]) -> list[str]:
        """Return those of these paths, relative to the project, that are changed or untracked."""
        wanted = sorted({place for path in paths if (place := self._place(str(path)))})
        found = self._status(*wanted) if wanted else {}
        return [path for path in found if not path.endswith("/")]

    def tags(self, pattern: str, *conditions: str) -> dict[str, str]:
        """The commits of all tags whose names match, the oldest commit first."""
        form = "--format=%(refname) %(objecttype) %(objectname) %(*objectname)"
        sort = "--sort=creatordate"
        found = self._read("for-each-ref", form, sort, *conditions, "refs/tags/" + pattern)
        tags = {}
        for line in found.splitlines():
            name, kind, sha, peeled = line.split(" ")
            if kind in ("commit", "tag"):
                tags[name.removeprefix("refs/tags/")] = peeled or sha
        return tags

    def commits(self, *chosen: str) -> list[Commit]:
        """Commits, when they were made and what they say, chosen as `git rev-list` does."""
        # Not `git log`: its settings may start a program.
        form = ("--format=%H %ct %s", "--encoding=UTF-8")
        lines = self._read("rev-list", *form, *chosen, "--").split("\n")
        parts = (line.split(" ", 2) for line in lines[1::2])
        return [Commit(sha, int(seconds), clean(subject)) for sha, seconds, subject in parts]

    def count(self, chosen: str) -> int:
        return int(self._read("rev-list", "--count", chosen, "--"))

    def changes_to(self, commit: str) -> list[str]:
        """The tracked paths in which this commit differs from what is checked out."""
        options = ("-r", "-z", "--name-only", "--no-renames")
        return self._read("diff-tree", *options, "HEAD", commit, "--").split("\0")[:-1]

    def dirty(self) -> list[str]:
        """What is changed or untracked and not ignored, but for the views that we write ourselves."""
        found = self._status()
        return [path for path in found if not ("/" + path).endswith(OUR_VIEWS)]

    def _status(self, *paths: str) -> dict[str, str]:
        limit = ("--ignore-submodules=dirty", "--", *paths)
        records = self._read("--literal-pathspecs", *STATUS, *limit).split("\0")[:-1]
        # A file that was taken out of the index alone has two records: the later one counts.
        return {record[3:]: record[:2] for record in records}

    # acting

    def switch(self, name: str, *, create: bool) -> None:
        """Check a branch out; local changes come along, or git refuses."""
        if not self.is_branch_name(name):
            raise Refused(f"git would not take {name!r} for a branch", "give it another name")
        if create:
            self._checkout("-b", name)
        elif self.has_branch(name):
            self._checkout("--guess", name)
        else:
            raise Refused(f"there is no branch {name}", f"git checkout -b {name}")

    def reset_to(self, commit: str) -> None:
        """Move the current branch and the work tree; what is not committed stays, or git refuses."""
        branch = self._branch_to_move()
        # Not `reset --keep`: that overwrites ignored files which stand in the way.
        self._checkout("--no-track", "-B", branch, commit)

    def require_reset(self, commit: str) -> None:
        """Raise Refused if git would refuse to reset a clean work tree to this commit."""
        self._branch_to_move()
        options = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=A")
        added = self._read("diff-tree", *options, "HEAD", commit, "--").split("\0")[:-1]
        in_the_way = [path for path in added if os.path.lexists(self.top / path)]
        if in_the_way:
            raise Refused(
                f"git ignores these files and would have to overwrite them: "
                f"{clean(', '.join(in_the_way[:10]))}",
                "Move them away.",
            )

    def _branch_to_move(self) -> str:
        branch = self.branch()
        if branch is None:
            raise Refused("no branch is checked out (detached HEAD)", "Run: git checkout BRANCH")
        if self._maybe("rev-parse", "-q", "--verify", "MERGE_HEAD"):
            raise Refused(
                "a merge is in progress", "Run: git merge --continue, or: git merge --abort"
            )
        return branch

    def _checkout(self, *arguments: str) -> None:
        self._act("checkout", "-q", "--no-overwrite-ignore", *arguments, "--")

    def tag(self, name: str, commit: str | None = None) -> str | None:
        """Set a lightweight tag on this commit, else on HEAD, and return that; move an existing tag."""
        tagged = commit or self.head()
        if tagged is not None:
            self._act("tag", "--no-sign", "-f", name, tagged)
        return tagged

    def set_ref(self, name: str, commit: str) -> None:
        """Let a reference that is neither a branch nor a tag name this commit."""
        self._act("update-ref", name, commit)

    def drop_ref(self, name: str) -> None:
        self._act("update-ref", "-d", name)

    def untag(self, name: str) -> None:
        self._act("tag", "-d", name)

    def commit(self, paths: Iterable[Path | str], message: str) -> str | None:
        """Commit these paths as they are now, and nothing else; None when nothing of them changed.

        Paths are relative to the project. Those that are ignored, missing or outside of the work
        tree are left out, and so is the project as a whole. What else was staged stays staged, and
        where git refuses, the index stays as it was.
        """
        wanted = sorted({place for path in paths if (place := self._place(str(path)))})
        found = self._status(*wanted) if wanted else {}
        changed = {path: kind for path, kind in found.items() if not path.endswith("/")}
        if not changed:
            return None
        new = [path for path, kind in changed.items() if kind == UNTRACKED]
        chosen = ("--only", *_literally(changed))
        text = message.encode("utf-8", "replace")
        before = self.head()
        try:
            if new:
                self._act("add", "--intent-to-add", *_literally(new))
            if self._look("commit", "--dry-run", "--porcelain", *chosen).returncode != 1:
                self._act("-c", "i18n.commitEncoding=UTF-8", "commit", "-qF-", *chosen, stdin=text)
        finally:
            after = self.head()
            if after == before:
                self._forget(new)
        return None if after == before else after

    def _place(self, path: str) -> str | None:
        """The path as git knows it, from the top; None if it is not inside."""
        project, top = Path(os.path.realpath(self.project)), Path(os.path.realpath(self.top))
        whole = project / path
        if not _is_path(path) or whole.name == os.pardir:
            return None
        # Links on the way are followed, for git does not look behind them; the last part may be one.
        real = Path(os.path.realpath(whole.parent)) / whole.name
        if real in (project, top) or not real.is_relative_to(top):
            return None
        return real.relative_to(top).as_posix()

    def _forget(self, paths: list[str]) -> None:
        """Take out of the index again what was not in it."""
        if paths:
            names = b"".join(os.fsencode(path) + b"\0" for path in paths)
            forget = ("update-index", "-z", "--force-remove", "--stdin")
            act(self.program, self.top, *forget, stdin=names)

    # asking git

    def _look(self, *arguments: str, stdin: bytes = b"") -> Done:
        return read(self.program, self.top, *arguments, stdin=stdin)

    def _read(self, *arguments: str) -> str:
        return _text(self._look(*arguments))

    def _maybe(self, *arguments: str) -> str | None:
        """The one line that git answers; None where it quietly has none."""
        done = self._look(*arguments)
        return None if done.returncode == 1 else _text(done).strip("\n")

    def _act(self, *arguments: str, stdin: bytes = b"") -> None:
        _text(act(self.program, self.top, *arguments, stdin=stdin))


def _is_path(text: str) -> bool:
    """Whether a file could have this name; a plan may say anything."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _literally(paths: Iterable[str]) -> tuple[str, ...]:
    # Not --literal-pathspecs: it would reach the user's hooks, and change what their commands mean.
    return ("--", *(f":(top,literal){path}" for path in paths))


def _text(done: Done) -> str:
    if done.returncode == 0:
        return os.fsdecode(done.stdout)
    said = words(done)
    if NO_IDENTITY.search(said):
        raise Refused(
            "git does not know who commits: user.name and user.email are not set",
            "git config user.name NAME && git config user.email ADDRESS",
        )
    raise Refused(f"git refused: {said}", LOOK)
