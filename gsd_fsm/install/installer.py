"""Install the hook into the settings of Claude Code, and remove it without a trace."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.config.program import forget_program, keep_program
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound, UsageError
from gsd_fsm.core.project import find_gsd, new_gsd, state_directory
from gsd_fsm.core.system import home, nearest_gsd
from gsd_fsm.documents.files import (
    Change,
    current_content,
    follow_link,
    require_writable,
    write_change,
)
from gsd_fsm.documents.json_text import NotJson, drop, find, put_text, root
from gsd_fsm.install import hook_entries, permissions, plugin, status_line
from gsd_fsm.install.git_exclude import plan_inclusion
from gsd_fsm.install.hook_entries import TIMEOUT, Before, cap_in, ours
from gsd_fsm.install.hook_file import data_directory, installed_hook, is_outdated, packaged_hook
from gsd_fsm.install.interpreter import SWITCHES, Interpreter
from gsd_fsm.install.record import Record, all_records, forget, recall, remember
from gsd_fsm.install.trial_run import run

_PROJECT_FILES = {"project": "settings.json", "local": "settings.local.json"}
SCOPES = ("user", *_PROJECT_FILES)
_BOM = "\ufeff"


class Place(NamedTuple):
    """A settings file that the client reads, or why it cannot be read."""

    scope: str
    path: Path
    document: Any
    problem: str


def client_directory() -> Path:
    """Return the directory with the user's settings of Claude Code."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path(home(), ".claude"))


def settings_path(scope: str, start: str) -> Path:
    if scope == "user":
        return client_directory() / "settings.json"
    return project_root(start) / ".claude" / _PROJECT_FILES[scope]


def project_root(start: str) -> Path:
    """Return the directory whose settings the scopes project and local are; raise NotFound."""
    return Path(nearest_gsd(start) or new_gsd(start)).parent


def is_below_root(start: str) -> bool:
    """Return whether this directory is in a project, but not its root."""
    try:
        return os.path.realpath(project_root(start)) != os.path.realpath(start)
    except NotFound:
        return False


def default_scope(start: str) -> str:
    """Return `local` in a project, since the hook's paths are those of one machine, else `user`."""
    try:
        new_gsd(start)
    except NotFound:
        return "user"
    return "local"


def survey(start: str) -> list[Place]:
    """Return the settings files of the user and of the project that this directory is in."""
    scopes = SCOPES if default_scope(start) == "local" else ("user",)
    return [_look(scope, settings_path(scope, start)) for scope in scopes]


def loaded(start: str) -> list[Place]:
    """Return the settings files that a client started in this directory reads.

    It does not read those of directories above.
    """
    user = _look("user", settings_path("user", start))
    found = (_look(scope, Path(start, ".claude", it)) for scope, it in _PROJECT_FILES.items())
    return [user, *(place for place in found if place.path != user.path)]


def hook_problem(start: str) -> tuple[str, str]:
    """Return why a client started in this directory loads no hook of ours, and the fix; else ""."""
    documents = [place.document for place in loaded(start)]
    if any(map(ours, documents)) or plugin.installed(documents, client_directory()):
        return "", ""
    if not is_below_root(start):
        return "the hook is not installed", command_line("init")
    root, fix = project_root(start), command_line("init --scope user")
    if any(ours(place.document) for place in survey(start)):
        return f"a client started here does not load the hook, which is installed for {root}", fix
    return "the hook is not installed", fix


def _look(scope: str, path: Path) -> Place:
    try:
        real = follow_link(path)
        content = current_content(real)
        document = {} if content is None else root(_text(real, content)).value
    except GsdError as error:
        return Place(scope, path, {}, error.message)
    return Place(scope, real, document, "")


def _text(path: Path, content: bytes) -> str:
    """Return the text of settings, without a BOM; raise UsageError with its place for any other."""
    try:
        text = content.decode("utf-8").removeprefix(_BOM)
        hook_entries.read_settings(text)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}: line {line}: not UTF-8", "Save the file as UTF-8.") from error
    except NotJson as error:
        raise _refused(path, error) from error
    return text


def _refused(path: Path, error: NotJson) -> UsageError:
    hint = "Fix the file and retry. Nothing was changed."
    return UsageError(f"{path}: {error.message}", hint)


def _bytes(text: str, like: bytes | None) -> bytes:
    mark = _BOM if like is not None and like.startswith(_BOM.encode()) else ""
    try:
        return (mark + text).encode()
    except UnicodeEncodeError as error:
        hint = "Install gsd-fsm or Python under another path."
        raise UsageError("a path contains bytes that are not UTF-8", hint) from error


def hook_change() -> Change:
    """Return the change that copies the hook of this version into the data directory."""
    source = current_content(packaged_hook())
    if source is None:
        raise CannotWrite(f"missing file: {packaged_hook()}", "Install gsd-fsm again.")
    return Change(installed_hook(), current_content(installed_hook()), source, private=True)


def settings_entry(scope: str, python: str) -> dict[str, Any]:
    return hook_entries.entry(python, str(installed_hook().parent), f"settings-{scope}")


def plan_install(
    scope: str,
    start: str,
    python: Interpreter,
    cap: str | None,
    *,
    line: bool = False,
    allow: bool = False,
    enable: bool = False,
) -> tuple[Change, Record]:
    """Return the change of the settings, and what to remember.

    `line`: with a status line. `allow`: with permission rules for the commands that loops name.
    `enable`: without the switch that turns all hooks off.
    """
    path = follow_link(settings_path(scope, start))
    before = current_content(path)
    text = "{}\n" if before is None else _text(path, before)
    known = recall(path)
    if known is None and scope != "user":
        known = _record_before_move(path, start)
    old_cap = cap_in(root(text).value)
    our_cap = old_cap if known is not None and known.cap == old_cap else None
    after = hook_entries.add(text, settings_entry(scope, python.path))
    if cap is not None and cap != old_cap:
        after, our_cap = hook_entries.set_cap(after, cap), cap
    if line:
        after = status_line.add(after)
    allowed = known.allowed if known is not None else ()
    if allow:
        try:
            after, allowed = permissions.allow(after, allowed)
        except NotJson as error:
            raise _refused(path, error) from error
    if enable:
        after = _with_hooks_on(after)
    record = Record(
        path,
        python.path,
        created=before is None or (known is not None and known.created),
        made_directory=not path.parent.exists() or (known is not None and known.made_directory),
        cap=our_cap,
        before=hook_entries.before_us(_without_us(text, known)),
        allowed=allowed,
        excluded=known.excluded if known is not None else (),
    )
    return Change(path, before, _bytes(after, before)), record


def _with_hooks_on(text: str) -> str:
    switch = (hook_entries.SWITCH,)
    return text if find(text, switch) is None else drop(text, switch)


def plan_elsewhere(start: str, but: Path, *, allow: bool, enable: bool) -> list[Change]:
    """Return the changes of all other settings here that would defeat `allow` or `enable`."""
    changes = []
    for place in survey(start):
        if place.path == but or place.problem or not place.document:
            continue
        before = current_content(place.path)
        text = new = _text(place.path, before or b"{}")
        new = permissions.narrow(new) if allow else new
        new = _with_hooks_on(new) if enable else new
        if new != text:
            changes.append(Change(place.path, before, _bytes(new, before)))
    return changes


def _record_before_move(path: Path, start: str) -> Record | None:
    """Return the record of these settings from before their project was moved here."""
    from gsd_fsm.core.journal.journal import Journal  # commands that change nothing do not need it

    try:
        journal_id = Journal(find_gsd(start)).read_cached().journal_id
    except GsdError:
        return None
    for entry in Path(state_directory(), "journals").glob(f"{escape(journal_id)}-*"):
        facts = plugin.read_json(entry)
        old = Path(str(facts.get("path") if isinstance(facts, dict) else "")).parent
        known = None if old.exists() else recall(old / ".claude" / path.name)
        if known is not None:
            new = str(path.parents[1])
            moved = [(file.replace(str(old), new, 1), text) for file, text in known.excluded]
            return known._replace(settings=path, excluded=tuple(moved))
    return None


def install(hook: Change, settings: Change, record: Record, others: Iterable[Change] = ()) -> bool:
    """Write the hook, the record and the settings in this order, so that none names a missing file.

    Then make the other changes. Return whether anything was changed.
    """
    others = list(others)
    keep_program()
    _write_hook(hook)
    warm(record.python, hook.path.parent)
    is_new = recall(record.settings) != record
    if settings.before != settings.after:
        _require_status_line(settings, hook.path.parent)
    if is_new:
        remember(record)
    due = [change for change in (settings, *others) if change.before != change.after]
    for change in due:
        write_change(change)
    return is_new or bool(due) or hook.before != hook.after


def _write_hook(hook: Change) -> None:
    if hook.before != hook.after:
        # Python compares bytecode with its source by time and size only.
        shutil.rmtree(hook.path.parent / "__pycache__", ignore_errors=True)
        write_change(hook)


def refresh_hook() -> Path:
    """Replace the installed hook by that of this version; return its path.

    Raise CannotWrite, and leave the old hook, if the file cannot be written.
    """
    hook = hook_change()
    try:
        require_writable(hook.path)
        _write_hook(hook)
    except GsdError as error:
        if is_outdated():  # another process has not replaced it meanwhile
            raise CannotWrite(
                f"the installed hook is outdated and cannot be replaced: {error.message}",
                "Run: gsd-fsm init",
            ) from error
    for python in dict.fromkeys(record.python for record in all_records()):
        with contextlib.suppress(GsdError):  # it compiles itself when it is first called
            warm(python, hook.path.parent)
    return hook.path


def warm(python: str, directory: Path) -> None:
    """Run the hook once, to compile it; raise CannotWrite if it fails."""
    if problem := _try(
        [python, *SWITCHES, "-c", hook_entries.WARM_CODE, str(directory)], directory
    ):
        hint = "Choose another interpreter: gsd-fsm init --python PATH"
        raise CannotWrite(f"{python} cannot run the hook: {problem}", hint)


def _require_status_line(settings: Change, directory: Path) -> None:
    """Raise CannotWrite if our status line is in the settings and does not run."""
    line = status_line.our_status_line(root(_text(settings.path, settings.after or b"{}")).value)
    # Another one may have come with a clone: only the one of this version is run.
    problem = (
        _try(status_line.to_arguments(line), directory) if line == status_line.command() else ""
    )
    if problem:
        raise CannotWrite(f"the status line cannot be run: {problem}", "Install gsd-fsm again.")


def _try(command: list[str], directory: Path) -> str:
    """Return why the command fails or prints something outside of projects; "" if it does not."""
    ran = run(command, b"{}\n", directory, os.environ, TIMEOUT)
    return ran.problem or ("unexpected output" if ran.out else "")


def _without_us(text: str, known: Record | None) -> str:
    """Return the settings without our parts; a record makes them what they were, byte for byte."""
    before = known.before if known is not None else Before({}, None)
    left = status_line.remove(hook_entries.remove(text, before))
    if known is not None:
        left = permissions.disallow(left, known.allowed, before.empty)
    if known is not None and known.cap is not None and cap_in(root(left).value) == known.cap:
        left = hook_entries.restore_cap(left, before)
    if left != text and root(left).value == {}:
        left = put_text(left, (), before.empty.get("", "{}"))
    return left


def plan_removal(path: Path) -> Change:
    """Return the change that removes our parts, or the file if there is nothing else in it."""
    before, known = current_content(path), recall(path)
    if before is None:
        return Change(path, None, None)
    left = _without_us(_text(path, before), known)
    is_left_empty = known is not None and known.created and root(left).value == {}
    return Change(path, before, None if is_left_empty else _bytes(left, before))


def remove(change: Change) -> None:
    known = recall(change.path)
    if change.before != change.after:
        write_change(change)
    if change.after is None and known is not None and known.made_directory:
        with contextlib.suppress(OSError):  # there are other files in it
            change.path.parent.rmdir()
    for inclusion in plan_inclusions(change.path):
        write_change(inclusion)
    forget(change.path)


def plan_inclusions(settings: Path) -> list[Change]:
    """Return the changes that remove what `init` added for git with these settings."""
    known = recall(settings)
    if known is None:
        return []
    files = dict.fromkeys(file for file, _ in known.excluded)
    changes = [
        plan_inclusion(Path(file), [text for name, text in known.excluded if name == file])
        for file in files
    ]
    return [change for change in changes if change.before != change.after]


def settings_with_us(start: str) -> dict[Path, str]:
    """Return the scope of every settings file with our parts, here or anywhere on this machine."""
    found = {place.path: place.scope for place in survey(start) if _has_us(place.document)}
    for record in all_records():
        place = _look("elsewhere", record.settings)
        # A file that cannot be read may still have them.
        if place.problem or _has_us(place.document):
            found.setdefault(record.settings, place.scope)
    return found


def _has_us(document: Any) -> bool:
    return bool(ours(document) or status_line.our_status_line(document))


def remove_hook() -> None:
    """Remove the copy of the hook, all records and the kept path of this program."""
    forget_program()
    for record in all_records():
        forget(record.settings)
    shutil.rmtree(installed_hook().parent, ignore_errors=True)
    for directory in (data_directory() / "installed", data_directory()):
        with contextlib.suppress(OSError):  # there are other files in it
            directory.rmdir()
