"""Compute every disk image that a power cut may leave after recorded calls."""

from __future__ import annotations

import random
from typing import Any

Files = dict[str, bytes]


class Disk:
    """Records calls in one directory: durable content, pending content, acknowledged events."""

    def __init__(self, files: Files) -> None:
        self.start = dict(files)
        self.log: list[tuple[Any, ...]] = []
        self._names = {name: number for number, name in enumerate(files)}
        self._contents = {number: len(files[name]) for name, number in self._names.items()}
        self._open: dict[int, int] = {}
        self._next = len(files)

    def watch(self, name: str, real: Any, *args: Any, **more: Any) -> Any:
        result = real(*args, **more)
        if name == "open":
            self._note_open(result, args, more)
        elif name == "write":
            file = self._open[args[0]]
            data = bytes(args[1][:result])
            self.log.append(("write", file, self._contents[file], data))
            self._contents[file] += result
        elif name == "ftruncate":
            file = self._open[args[0]]
            self.log.append(("cut", file, args[1]))
            self._contents[file] = args[1]
        elif name == "fsync":
            self.log.append(("sync", self._open[args[0]]))
        elif name == "replace":
            self.log.append(("name", args[1], self._names.pop(args[0]), args[0]))
            self._names[args[1]] = self.log[-1][2]
        elif name == "unlink":
            self.log.append(("name", "", self._names.pop(args[0]), args[0]))
        return result

    def _note_open(self, fd: int, args: tuple[Any, ...], more: dict[str, Any]) -> None:
        if "dir_fd" not in more:
            self._open[fd] = -1  # the directory itself
            return
        name = args[0]
        if name not in self._names:
            self._names[name] = self._next
            self._contents[self._next] = 0
            self.log.append(("name", name, self._next, ""))
            self._next += 1
        self._open[fd] = self._names[name]

    def promise(self, sum_: str) -> None:
        self.log.append(("promise", sum_))

    def before(self, step: int) -> Moment:
        return Moment(self.start, self.log[:step])


class Moment:
    """The state of the disk after some calls."""

    def __init__(self, files: Files, log: list[tuple[Any, ...]]) -> None:
        self.names = {name: number for number, name in enumerate(files)}
        self.renamings: list[tuple[str, int, str]] = []
        self.versions = {self.names[name]: [data] for name, data in files.items()}
        self.promised: list[str] = []
        for call in log:
            self._take(*call)

    def _take(self, what: str, *rest: Any) -> None:
        if what == "promise":
            self.promised.append(rest[0])
        elif what == "name":
            self.renamings.append(rest)  # type: ignore[arg-type]
            self.versions.setdefault(rest[1], [b""])
        elif what == "sync" and rest[0] == -1:
            self.names = self._named(len(self.renamings))
            self.renamings = []
        elif what == "sync":
            self.versions[rest[0]] = self.versions[rest[0]][-1:]
        else:
            kept = self.versions[rest[0]][-1][: rest[1]]
            new = kept if what == "cut" else kept.ljust(rest[1], b"\0") + rest[2]
            self.versions[rest[0]].append(new)

    def _named(self, count: int) -> dict[str, int]:
        names = dict(self.names)
        for new, number, old in self.renamings[:count]:
            if old:
                names.pop(old, None)
            if new:
                names[new] = number
        return names

    def is_unsure(self) -> bool:
        """Return whether a power cut now may leave more than one image."""
        return bool(self.renamings) or any(len(known) > 1 for known in self.versions.values())

    def image(self, choose: random.Random, sector: int) -> Files:
        """Return one of the states that the directory may have afterwards."""
        names = self._named(choose.randint(0, len(self.renamings)))
        return {name: self._content(number, choose, sector) for name, number in names.items()}

    def _content(self, number: int, choose: random.Random, sector: int) -> bytes:
        versions = self.versions[number]
        if len(versions) == 1:
            return versions[0]
        sizes = [len(version) for version in versions]
        size = choose.choice([*sizes, choose.randint(min(sizes), max(sizes))])
        padded = [version.ljust(max(sizes), b"\0") for version in versions]
        first = min(sizes) // sector * sector  # the versions differ only in what they append
        sectors = [slice(at, min(size, at + sector)) for at in range(first, size, sector)]
        return padded[0][:first] + b"".join(choose.choice(padded)[part] for part in sectors)
