"""Check what else decides whether the hook works: switches, the client's cap, disk and journal."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.config.program import program_by_path
from gsd_fsm.config.search_path import find_programs
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
from gsd_fsm.evidence.shell import find_shell
from gsd_fsm.history.replay import examine
from gsd_fsm.install.hook_entries import DEFAULT_CAP, cap_in
from gsd_fsm.install.interpreter import in_venv

_MOUNTS = Path("/proc/self/mountinfo")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "vboxsf", "fuse.vmhgfs-fuse")
PATH_FIX = "Add its directory to the PATH of your login shell, or run: pipx install gsd-fsm"


class Row(NamedTuple):
    """The result of a check: `ok`, `failed`, or a `note` about something that works.

    `off` is set if this keeps a working hook from continuing any loop here.
    """

    where: str
    name: str
    state: str
    told: str = ""
    fix: str = ""
    ms: int | None = None
    off: bool = False


def check_environment(start: str, documents: dict[str, Any]) -> Iterator[Row]:
    """Yield the results for the settings, the environment and the project in this directory."""
    for where, document in documents.items():
        if document.get("disableAllHooks"):
            text = "disableAllHooks is set: the client runs no hooks"
            yield Row(where, "switch", "failed", text, "Remove disableAllHooks.", off=True)
    if os.environ.get("GSD_FSM_DISABLE") == "1":
        text = "the hook is disabled by GSD_FSM_DISABLE=1"
        yield Row("here", "switch", "note", text, "unset GSD_FSM_DISABLE", off=True)
    problem = path_problem(start)
    yield Row("here", "gsd-fsm on PATH", "note" if problem else "ok", problem, PATH_FIX)
    yield _check_shell(start)
    cap, text = _cap(documents)
    yield Row("here", "client's cap", "ok", text)
    try:
        gsd = find_gsd(start)
    except NotFound:
        yield _no_journal("project", _new_gsd(start))
        return
    stop = join(gsd, "STOP")
    if os.path.lexists(stop):
        text = f"the hook is disabled by {stop}"
        yield Row("here", "switch", "note", text, f"rm {shlex.quote(stop)}", off=True)
    kind = file_system_of(os.path.realpath(gsd), _mounts())
    if kind in _REMOTE:
        text = f"{gsd} is on {kind}, where locks and syncs are not reliable"
        yield Row("here", "disk", "note", text, "Move the project to a local disk.")
    yield from _check_journal(gsd, cap)


def path_problem(start: str) -> str:
    """Return why the shell of an agent may not find the command gsd-fsm, or ""."""
    found = list(find_programs(start, "gsd-fsm"))
    if not found:
        return f"gsd-fsm is not on the PATH: texts name {program_by_path()} instead"
    if all(map(in_venv, found)):
        return f"gsd-fsm is only in a virtual environment ({found[0]}): agents may not find it"
    return ""


def _check_shell(start: str) -> Row:
    try:
        return Row("here", "shell of checks", "ok", find_shell(start))
    except GsdError as error:
        return Row("here", "shell of checks", "failed", error.message, error.hint)


def _new_gsd(start: str) -> str:
    try:
        return new_gsd(start)
    except NotFound:
        return join(start, GSD)


def _no_journal(name: str, gsd: str) -> Row:
    """Return the result if there is no journal: a note if this user had one here."""
    suffix = "-" + digest_of(os.path.realpath(gsd))
    known = Path(state_directory(), "journals").glob(f"*{suffix}")
    last = max(known, key=lambda path: path.stat().st_mtime, default=None)
    if last is None:
        return Row("here", name, "ok", "no loop has been started here yet")
    text = f"the journal {last.name.removesuffix(suffix)} is missing"
    return Row("here", name, "note", text, "Restore it, or start a new loop: gsd-fsm start")


def _cap(documents: dict[str, Any]) -> tuple[int, str]:
    """Return how many blocks in a row the client accepts, 0 for any number, and who says so."""
    found = [(where, cap_in(document)) for where, document in documents.items()]
    # Settings prevail over the environment, and a nearer file over a farther one.
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


def file_system_of(path: str, mounts: list[str]) -> str:
    """Return the type of the file system that the path is on; "" if the mounts do not say."""
    types = {}  # a later mount at the same place hides an earlier one
    for line in mounts:
        left, _, right = line.partition(" - ")
        if right and len(left.split()) > 4:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), left.split()[4])
            types[point] = right.split()[0]
    places = [str(place) for place in (Path(path), *Path(path).parents)]
    return next((types[place] for place in places if place in types), "")


def _check_journal(gsd: str, cap: int) -> Iterator[Row]:
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
        text = f"corrupt at line {first['line']}, byte {first['offset']}: {first['what']}"
        yield Row("here", "journal", "failed", text, "gsd-fsm fsck --repair")
        return
    yield Row("here", "journal", "ok", f"{report['events']} valid events")
    if report["events"] and not is_registered(journal.loops.journal_id, gsd):
        text = "the journal is not trusted: the hook ignores it"
        fix = "Read it: gsd-fsm replay. Then run: gsd-fsm trust"
        yield Row("here", "trust", "note", text, fix, off=bool(journal.loops.live()))
    for loop in journal.loops.live():
        idle = loop.limits.idle_limit
        if cap and not 0 < idle <= cap:
            text = f"the idle limit of loop {loop.id} ({idle or 'none'}) is above the cap of {cap}"
            fix = f"gsd-fsm init --raise-cap {idle or 100}"
            yield Row("here", "client's cap", "note", text, fix)
    yield from _check_views(Path(gsd).parent, journal.loops)


def _check_views(project: Path, loops: Loops) -> Iterator[Row]:
    """Yield a note for each view that is out of date: the hook skips a file it cannot write."""
    for file in view_files(loops):
        name = f"{LOOP_NAME}/{file.name}"
        shown = None
        with contextlib.suppress(GsdError):
            shown = current_content(project / name)
        if file.due and shown != file.data:
            fix = f"Make {name} a writable file, or remove it. The next event writes it."
            yield Row("here", "view", "note", f"{name} does not show loop {file.loop}", fix)
