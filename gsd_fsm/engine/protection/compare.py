"""Compare what the checks of a loop depend on with what `start` froze."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.json_reader import parse_json
from gsd_fsm.core.loop.protection import Protected
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.engine.context import Context, LoopTransaction
from gsd_fsm.engine.protection.files import Files, digest_at, files_of, is_of_git
from gsd_fsm.git.repo import UPSTREAM, Repository
from gsd_fsm.git.tree import Content
from gsd_fsm.protection.originals import LINK, Originals, content_at, digest
from gsd_fsm.protection.values import has_values, same

_MOST_LISTED = 20
HOOKS = ("hooks",)


class Finding(NamedTuple):
    """The protected files that differ, as records, and the watched files that do.

    `outside` are the files that checks name and that are not part of the tree, with the digests of
    their contents, None for a missing one. `stamps` show whether a file was written or moved.
    """

    altered: list[dict[str, Any]]
    watched: dict[str, Any]
    outside: Mapping[str, str | None] = {}
    stamps: Mapping[str, tuple[int, ...]] = {}

    def of_check(self, name: str) -> list[dict[str, Any]]:
        """Return the altered files that a check depends on."""
        return [it for it in self.altered if name in it.get("checks", (name,))]


class Comparison:
    """Compares the files of a loop at one moment after another.

    Contents that a check read are compared by value, with the originals that `start` kept.
    """

    def __init__(self, context: Context, loop: Loop) -> None:
        self.context, self.protection = context, loop.protection
        self.originals = Originals(context.gsd, loop.id)
        self.known = {file.path: file for file in self.protection.files}
        self.watch_list = self._watch_list()

    def _watch_list(self) -> dict[str, Any]:
        kept = self.originals.read(self.protection.watched)
        try:
            return dict(parse_json(kept.decode("ascii"))) if kept else {}
        except ValueError:
            return {}

    @property
    def is_needed(self) -> bool:
        return bool(self.known or self.protection.watched)

    def find(self, content: Content | None) -> Finding:
        """Return what differs now; `content` is that of the work tree, if it was read."""
        if not self.is_needed:
            return Finding([], {})
        files = files_of(self.context, content)
        conftests = dict(self._new_conftests(files))
        altered = [*self._altered(), *self._new_hooks(files, conftests)]
        outside = self._outside(files)
        stamps = {path: _stamp(self.context.project / path) for path in (*self.known, *outside)}
        return Finding(altered, self._watched(files, conftests), outside, stamps)

    def depends(self, check: str) -> list[str]:
        """Return the protected files of a check, and the files that it names."""
        own = [it.path for it in self.protection.files if not it.checks or check in it.checks]
        return [*dict.fromkeys((*own, *self.named(check)))]

    def named(self, check: str) -> list[str]:
        """Return the files that a check names."""
        return list(self.watch_list.get("named", {}).get(check, ()))

    def _outside(self, files: Files) -> dict[str, str | None]:
        paths = (it for named in self.watch_list.get("named", {}).values() for it in named)
        places = {path: self.context.project / path for path in paths if path not in files}
        return {path: identity_of(place) for path, place in places.items() if not place.is_dir()}

    # protected files

    def _altered(self) -> Iterator[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for file in self.protection.files:
            content = content_at(self.context.project / file.path)
            now = digest(content) if content is not None else None
            if now == file.digest or self._means_the_same(file, content):
                continue
            record = found.setdefault(file.path, {"path": file.path, "digest": now, "checks": []})
            record["checks"] += file.checks
            record["upstream"] = record.get("upstream", True) and self._is_upstream(file, content)
            if not file.checks:
                record["every"] = True
        for record in found.values():
            if not record["upstream"]:
                del record["upstream"]
            if record.pop("every", False) or not record["checks"]:
                del record["checks"]
            else:
                record["checks"] = sorted(set(record["checks"]))
            yield record

    def _means_the_same(self, file: Protected, content: bytes | None) -> bool:
        before = self.originals.read(file.digest)
        if before is None and file.digest is not None:
            return False
        return same(file.path, before, content, file.parts)

    def _is_upstream(self, file: Protected, content: bytes | None) -> bool:
        """Return whether the upstream branch has the file like this, as after a rebase of the user."""
        repository = self._upstream
        if repository is None or content is None or content.startswith(LINK):
            return False
        there = repository.content(UPSTREAM, file.path)
        return there is not None and same(file.path, there, content, file.parts)

    @cached_property
    def _upstream(self) -> Repository | None:
        """The repository, None if its branch has no upstream branch."""
        repository = self.context.repository_or_none()
        return repository if repository and repository.resolved(UPSTREAM) else None

    def _new_hooks(
        self, files: Files, conftests: Mapping[str, list[str]]
    ) -> Iterator[dict[str, Any]]:
        """Yield each new conftest.py that has hooks."""
        for path, checks in conftests.items():
            content = files.project.read(path)
            if has_values(path, content, HOOKS):
                yield {"path": path, "digest": digest(content or b""), "checks": checks}

    def _new_conftests(self, files: Files) -> Iterator[tuple[str, list[str]]]:
        """Yield each conftest.py that was not there at `start`, and the checks that would load it."""
        directories: Mapping[str, list[str]] = self.watch_list.get("hooks", {})
        if not directories:
            return
        known = self.watch_list["files"].keys() | self.known.keys()
        # Git may ignore the file itself, but not all files of a directory with tests.
        for path in files.places_of("conftest.py"):
            if path not in known and files.project.is_file(path):
                folder = posixpath.dirname(path)
                checks = [it for it, tops in directories.items() if _are_related(folder, tops)]
                if checks:
                    yield path, checks

    # watched files

    def _watched(self, files: Files, conftests: Iterable[str]) -> dict[str, Any]:
        known: Mapping[str, str] = self.watch_list.get("files", {})
        whole = {file.path for file in self.protection.files if not file.parts}
        of_git = [path for path, before in known.items() if is_of_git(before)]
        plain = [path for path, before in known.items() if not is_of_git(before)]
        now = {**files.digests(plain), **files.identities(of_git)}
        differing = [path for path, before in known.items() if now[path] != before]
        deleted = [path for path in differing if now[path] is None]
        changed = [path for path in differing if now[path] is not None and path not in whole]
        new = [
            path
            for path, parts in self.watch_list.get("missing", ())
            if _exists(path, parts, files)
        ]
        new += conftests
        found = {"changed": changed, "deleted": deleted, "new": sorted(set(new))}
        if self.protection.watched and not self.watch_list:
            return {"lost": True}
        more = sum(max(0, len(paths) - _MOST_LISTED) for paths in found.values())
        listed = {name: paths[:_MOST_LISTED] for name, paths in found.items() if paths}
        return {**listed, "more": more} if more else dict(listed)


def identity_of(place: Path) -> str | None:
    """Return what identifies the content of a file, None if there is none."""
    known = digest_at(place)
    return "unreadable" if known is None and os.path.lexists(place) else known


def _stamp(place: Path) -> tuple[int, ...]:
    """Return what every writer and mover of a file changes, also of the target of a link."""
    try:
        found = (place.lstat(), place.stat())
    except OSError:
        return ()
    return tuple(number for it in found for number in (it.st_ino, it.st_ctime_ns))


def record_finding(tx: LoopTransaction, finding: Finding) -> None:
    """Append which protected files are altered, if that is news."""
    now = {it["path"]: (it["digest"], it.get("upstream", False)) for it in finding.altered}
    if now != {it.path: (it.digest, it.upstream) for it in tx.loop.protection.altered}:
        tx.append("plan", {"altered": finding.altered}, by="cli")


def _are_related(folder: str, tops: list[str]) -> bool:
    """Return whether this directory is below, above, or one of these."""
    return any(_is_below(folder, top) or _is_below(top, folder) for top in tops)


def _is_below(folder: str, top: str) -> bool:
    return not top or folder == top or folder.startswith(top + "/")


def _exists(path: str, parts: list[str], files: Files) -> bool:
    if not parts:
        return files.project.is_file(path) or files.project.is_directory(path)
    return has_values(path, files.project.read(path), parts)
