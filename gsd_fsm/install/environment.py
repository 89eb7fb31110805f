"""What decides about the hook besides itself: switches, the client's cap, the disk, the journal."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.errors import GsdError, NotFound
from gsd_fsm.core.hook.clients import CAP, block_cap
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.project import find_gsd, is_registered, new_gsd, state_directory
from gsd_fsm.core.system import GSD, join
from gsd_fsm.core.views.loop_json import view_files
from gsd_fsm.core.views.write import LOOP_NAME
from gsd_fsm.documents.files import current_content
from gsd_fsm.history.replay import examine
from gsd_fsm.install.hook_entries import DEFAULT_CAP, cap_in
from gsd_fsm.install.interpreter import in_venv

_MOUNTS = Path("/proc/self/mountinfo")
REACH = "pipx install gsd-fsm, or put its directory on the PATH of your login shell"
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "vboxsf", "fuse.vmhgfs-fuse")


class Row(NamedTuple):
    """One check: `ok`, `failed`, or a `note` on what works but should be known.

    `off` is what keeps a hook that works from holding any loop here.
    """

    where: str
    name: str
    state: str
    told: str = ""
    fix: str = ""
    ms: int | None = None
    off: bool = False


def surroundings(start: str, documents: dict[str, Any]) -> Iterator[Row]:
    """What the settings, the environment and the project here have to say."""
    for where, document in documents.items():
        if document.get("disableAllHooks"):
            told = "disableAllHooks is set: the client runs no hook at all"
            fix = "take disableAllHooks out of that file"
            yield Row(where, "switch", "failed", told, fix, off=True)
    if os.environ.get("GSD_FSM_DISABLE") == "1":
        told = "GSD_FSM_DISABLE=1 switches every loop off"
        yield Row("here", "switch", "note", told, "unset GSD_FSM_DISABLE", off=True)
    problem = out_of_reach()
    yield Row("here", "gsd-fsm on PATH", "note" if problem else "ok", problem, REACH)
    cap, told = _cap(documents)
    yield Row("here", "client's cap", "ok", told)
    try:
        gsd = find_gsd(start)
    except NotFound:
        yield _no_journal("project", _where_one_would_be(start))
        return
    stop = join(gsd, "STOP")
    if os.path.lexists(stop):
        told = f"{stop} switches every loop here off"
        yield Row("here", "switch", "note", told, f"rm {shlex.quote(stop)}", off=True)
    kind = mount_of(os.path.realpath(gsd), _mounts())
    if kind in _REMOTE:
        told = f"{gsd} is on {kind}: locks and syncs there are not to be relied on"
        yield Row("here", "disk", "note", told, "keep the project on a local disk")
    yield from _journal(gsd, cap)


def out_of_reach() -> str:
    """Why the shell of an agent may not find our command, "" if it will."""
    found = [
        program
        for directory in os.get_exec_path()
        if (program := shutil.which("gsd-fsm", path=directory))
    ]
    if not found:
        return "the command gsd-fsm is not on the PATH: an agent would not find it"
    if all(map(in_venv, found)):
        inside = f"the command gsd-fsm is found only in a virtual environment, {found[0]}"
        return f"{inside}: an agent outside of it would not find it"
    return ""


def _where_one_would_be(start: str) -> str:
    try:
        return new_gsd(start)
    except NotFound:
        return join(start, GSD)


def _no_journal(name: str, gsd: str) -> Row:
    """What is to be said where no journal is; one that this user had here must not just vanish."""
    suffix = "-" + digest_of(os.path.realpath(gsd))
    known = Path(state_directory(), "journals").glob(f"*{suffix}")
    last = max(known, key=lambda path: path.stat().st_mtime, default=None)
    if last is None:
        return Row("here", name, "ok", "no loop was started here yet")
    told = f"the journal {last.name.removesuffix(suffix)} that was here is gone"
    return Row("here", name, "note", told, "put it back, or begin anew with 'gsd-fsm start'")


def _cap(documents: dict[str, Any]) -> tuple[int, str]:
    """How many blocks in a row the client honours, 0 for any number, and who says so."""
    found = [(where, cap_in(document)) for where, document in documents.items()]
    # The client puts the settings over the environment, and the nearer file over the farther.
    for where, value in [*reversed(found), ("the environment", os.environ.get(CAP))]:
        if value is not None:
            cap = block_cap("claude", value)
            return cap, f"{cap or 'any number of'} blocks in a row, from {where}"
    return DEFAULT_CAP, f"{DEFAULT_CAP} blocks in a row, its default"


def _mounts() -> list[str]:
    try:
        return _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


def mount_of(path: str, mounts: list[str]) -> str:
    """The kind of file system the path is on, "" if the list of mounts does not tell."""
    best, kind = -1, ""
    for line in mounts:
        left, dash, right = line.partition(" - ")
        if not dash or len(left.split()) < 5:
            continue
        point = left.split()[4].encode("utf-8", "surrogateescape")
        for octal in (b"\\040", b"\\011", b"\\012", b"\\134"):
            point = point.replace(octal, bytes([int(octal[1:], 8)]))
        mounted = os.fsdecode(point)
        inside = path == mounted or path.startswith(mounted.rstrip("/") + "/")
        # Of two mounts at one place the later one is seen.
        if inside and len(mounted) >= best:
            best, kind = len(mounted), right.split()[0]
    return kind


def _journal(gsd: str, cap: int) -> Iterator[Row]:
    journal = Journal(gsd)
    try:
        report = examine(journal)
    except NotFound:
        yield _no_journal("journal", gsd)
        return
    except GsdError as error:
        yield Row("here", "journal", "failed", error.message, error.hint)
        return
    if report["damage"]:
        first = report["damage"][0]
        told = f"corrupt at line {first['line']}, byte {first['offset']}: {first['what']}"
        yield Row("here", "journal", "failed", told, "gsd-fsm fsck --repair")
        return
    yield Row("here", "journal", "ok", f"{report['events']} good events")
    if report["events"] and not is_registered(journal.loops.journal_id, gsd):
        told = "the journal is not trusted: the hook passes it over"
        fix = "look with 'gsd-fsm replay', then 'gsd-fsm trust'"
        yield Row("here", "trust", "note", told, fix, off=bool(journal.loops.live()))
    for loop in journal.loops.live():
        idle = loop.limits.idle_limit
        if cap and not 0 < idle <= cap:
            told = f"loop {loop.id} may idle {idle or 'for ever'}, beyond the client's cap of {cap}"
            fix = f"gsd-fsm init --raise-cap {idle or 100}"
            yield Row("here", "client's cap", "note", told, fix)
    yield from _views(Path(gsd).parent, journal.loops)


def _views(project: Path, loops: Loops) -> Iterator[Row]:
    """The views that do not show what they should: whoever appends passes over what is in the way."""
    for file in view_files(loops):
        name = f"{LOOP_NAME}/{file.name}"
        shown = None
        with contextlib.suppress(GsdError):
            shown = current_content(project / name)
        if file.due and shown != file.data:
            fix = f"make {name} a file that you may write, or remove it; the next event shows it"
            yield Row("here", "view", "note", f"{name} does not show loop {file.loop}", fix)
