"""Check the environment of the hook: switches, client, disk and journal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gsd_fsm.core.codec import digest_of
from gsd_fsm.core.errors import GsdError, NotFound
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.limits import has_budget
from gsd_fsm.core.loop.spending import missing_source
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.project import find_gsd, is_registered, new_gsd, state_directory
from gsd_fsm.core.system import GSD, join
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.views.loop_json import view_files
from gsd_fsm.core.views.write import LOOP_NAME
from gsd_fsm.documents.files import current_content
from gsd_fsm.evidence.shell import find_shell
from gsd_fsm.history.replay import examine
from gsd_fsm.install.checks.client import CLIENT, cap_of, check_client
from gsd_fsm.install.checks.row import Row
from gsd_fsm.install.hook_entries import SWITCH, cap_in
from gsd_fsm.install.installer import SCOPES
from gsd_fsm.install.status_line import has_foreign_status_line, our_status_line

_MOUNTS = Path("/proc/self/mountinfo")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "vboxsf", "fuse.vmhgfs-fuse")
_BY_HOOK, _START = b'"by":"hook"', b'"type":"start"'


def check_environment(start: str, documents: dict[str, Any], init: str) -> Iterator[Row]:
    """Yield the results for settings, client, environment and project in this directory.

    `init` is the command that installs the hook here.
    """
    for where, document in documents.items():
        if document.get(SWITCH):
            text = f"{SWITCH} is set: the client runs no hooks"
            yield Row(where, "switch", "failed", text, f"{init} --enable-hooks", off=True)
    if os.environ.get("GSD_FSM_DISABLE") == "1":
        text = "the hook is disabled by GSD_FSM_DISABLE=1"
        yield Row("here", "switch", "note", text, "unset GSD_FSM_DISABLE", off=True)
    yield from check_client(start, documents, init)
    yield _check_shell(start)
    try:
        gsd = find_gsd(start)
    except NotFound:
        yield _no_journal("project", _new_gsd(start))
        return
    stop = join(gsd, "STOP")
    if os.path.lexists(stop):
        text = f"the hook is disabled by {stop}"
        yield Row("here", "switch", "note", text, f"rm {_short_path(stop)}", off=True)
    kind = file_system_of(os.path.realpath(gsd), _mounts())
    if kind in _REMOTE:
        text = f"{gsd} is on {kind}, where locks and syncs are not reliable"
        yield Row("here", "disk", "note", text, "Move the project to a local disk.")
    yield from _check_journal(gsd, documents, init)


def _short_path(path: str) -> str:
    """Return a path for a shell in the current directory."""
    short = os.path.relpath(path)
    return shlex.quote(path if short.startswith("..") else short)


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
    return Row("here", name, "note", text, "Restore it, or start a new loop.")


def _mounts() -> list[str]:
    try:
        return _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


def file_system_of(path: str, mounts: list[str]) -> str:
    """Return the type of the file system that the path is on; "" if it is unknown."""
    types = {}  # a later mount at the same place hides an earlier one
    for line in mounts:
        left, _, right = line.partition(" - ")
        if right and len(left.split()) > 4:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), left.split()[4])
            types[point] = right.split()[0]
    places = [str(place) for place in (Path(path), *Path(path).parents)]
    return next((types[place] for place in places if place in types), "")


def _check_journal(gsd: str, documents: dict[str, Any], init: str) -> Iterator[Row]:
    journal = Journal(gsd)
    try:
        report = examine(journal)
    except NotFound:
        yield _no_journal("journal", gsd)
        return
    except GsdError as error:
        yield Row("here", "journal", "failed", error.message, error.hint.removeprefix("Run: "))
        return
    if report["damage"]:
        first = report["damage"][0]
        text = f"corrupt at line {first['line']}, byte {first['offset']}: {first['what']}"
        yield Row("here", "journal", "failed", text, "gsd-fsm fsck --repair")
        return
    yield Row("here", "journal", "ok", plural(report["events"], "valid event"))
    live = journal.loops.live()
    if report["events"] and not is_registered(journal.loops.journal_id, gsd):
        text = "the journal is not trusted: the hook ignores it"
        yield Row("here", "trust", "note", text, "gsd-fsm trust", off=bool(live))
    elif live:
        yield _check_calls(journal, [loop.id for loop in live])
    for loop in live:
        yield from _check_cap(loop, documents, init)
        yield from _check_budget(loop, documents, init)
    yield from _check_views(Path(gsd).parent, journal.loops)


def _check_calls(journal: Journal, live: list[str]) -> Row:
    """Return whether the hook has recorded anything since the last of these loops was started."""
    called = last = ""
    with Path(journal.journal_path()).open("rb") as file:
        for line in file:
            if line.endswith(b"\n") and (_BY_HOOK in line or _START in line):
                event = json.loads(line)
                if event["type"] == "start" and event["loop"] in live:
                    called, last = "", event["loop"]
                elif event["by"] == "hook":
                    called = event["ts"]
    if called:
        return Row("here", "calls", "ok", "the hook was last called", at=called)
    text = f"no session has called the hook since loop {last} was started"
    return Row("here", "calls", "note", text, CLIENT)


def _check_cap(loop: Loop, documents: dict[str, Any], init: str) -> Iterator[Row]:
    cap, idle = cap_of(documents)[0], loop.limits.idle_limit
    if cap and not 0 < idle <= cap:
        text = f"the idle limit of loop {loop.id} ({idle or 'none'}) is above the cap of {cap}"
        setting = next((it for it in reversed(documents) if cap_in(documents[it]) is not None), "")
        scope = setting.partition(" ")[0]
        command = f"gsd-fsm init --scope {scope}" if scope in SCOPES else init
        yield Row("here", "idle limit", "note", text, f"{command} --raise-cap {idle}")


def _check_budget(loop: Loop, documents: dict[str, Any], init: str) -> Iterator[Row]:
    """Yield the result for a loop whose money or tokens are limited."""
    if not has_budget(loop):
        return
    what = missing_source(loop)
    lines = list(documents.values())
    limited_by_money = what == "the budget"
    if not what:
        known = (
            "is reported by the client" if loop.usage.sources else "is known after its first stop"
        )
        yield Row("here", "budget", "ok", f"the usage of loop {loop.id} {known}")
    elif limited_by_money and any(map(our_status_line, lines)):
        yield Row(
            "here", "budget", "ok", f"the status line will report the usage of loop {loop.id}"
        )
    else:
        text = f"the usage of loop {loop.id} is not reported: {what} cannot be enforced"
        fix = f"{init} --status-line"
        if not limited_by_money:
            fix = "Keep the transcript of the session: nothing else reports tokens."
        elif any(map(has_foreign_status_line, lines)):
            fix = "Let your status line also run: gsd-fsm statusline"
        yield Row("here", "budget", "note", text, fix)


def _check_views(project: Path, loops: Loops) -> Iterator[Row]:
    """Yield a note for each outdated view: the hook skips a file that it cannot write.

    The next event writes a file that is missing.
    """
    for file in view_files(loops):
        name = f"{LOOP_NAME}/{file.name}"
        path = project / name
        shown = None
        with contextlib.suppress(GsdError):
            shown = current_content(path)
        blocks = next((it for it in (path.parent, path) if _is_in_the_way(it, path)), None)
        if file.due and shown != file.data and blocks is not None:
            short = _short_path(str(blocks))
            text = f"{name} does not show loop {file.loop}"
            yield Row("here", "view", "note", text, f"mv {short} {short}.old")


def _is_in_the_way(place: Path, file: Path) -> bool:
    """Return whether something at this place prevents writing the file."""
    return os.path.lexists(place) and (place == file or place.is_symlink() or not place.is_dir())
