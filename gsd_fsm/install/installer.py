"""Putting the hook into the settings of Claude Code, and taking it out again without a trace."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import gsd_fsm
from gsd_fsm.core.errors import CannotWrite, GsdError, NotFound, UsageError
from gsd_fsm.core.project import new_gsd
from gsd_fsm.core.syscalls import explain
from gsd_fsm.core.system import home
from gsd_fsm.documents.files import Change, current_content, follow_link, write_change
from gsd_fsm.documents.json_text import NotJson, root
from gsd_fsm.install.backup import (
    Record,
    all_records,
    data_directory,
    fingerprint,
    forget,
    recall,
    remember,
)
from gsd_fsm.install.hook_entries import (
    MODULE,
    TIMEOUT,
    WARM_CODE,
    cap_in,
    entry,
    ours,
    require_shape,
    with_cap,
    with_us,
    without_cap,
    without_us,
)
from gsd_fsm.install.interpreter import SWITCHES, Interpreter
from gsd_fsm.install.status_line import (
    our_status_line,
    started,
    status_line,
    with_status_line,
    without_status_line,
)

_PROJECT_FILES = {"project": "settings.json", "local": "settings.local.json"}
SCOPES = ("user", *_PROJECT_FILES)
_BOM = "\ufeff"


class Place(NamedTuple):
    """A settings file that the client would read here."""

    scope: str
    path: Path
    document: Any
    problem: str


def packaged_hook() -> Path:
    """The hook that came with this version."""
    return Path(gsd_fsm.__file__).with_name(f"{MODULE}.py")


def installed_hook() -> Path:
    """The copy that settings name: it outlives the environment that this program is installed in."""
    return data_directory() / "hook" / f"{MODULE}.py"


def client_directory() -> Path:
    """Where Claude Code keeps the settings of the user."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path(home(), ".claude"))


def settings_path(scope: str, start: str) -> Path:
    if scope == "user":
        return client_directory() / "settings.json"
    return Path(new_gsd(start)).parent / ".claude" / _PROJECT_FILES[scope]


def default_scope(start: str) -> str:
    """In a project its file that is not shared, since the hook's paths are those of one machine."""
    try:
        new_gsd(start)
    except NotFound:
        return "user"
    return "local"


def survey(start: str) -> list[Place]:
    """The settings files that the client would read here, each with what is wrong with it."""
    places = [("user", client_directory() / "settings.json")]
    with contextlib.suppress(NotFound):
        client = Path(new_gsd(start)).parent / ".claude"
        places += [(scope, client / name) for scope, name in _PROJECT_FILES.items()]
    return [_look(scope, path) for scope, path in places]


def _look(scope: str, path: Path) -> Place:
    try:
        real = follow_link(path)
        content = current_content(real)
        document = {} if content is None else root(_text(real, content)).value
    except GsdError as error:
        return Place(scope, path, {}, error.message)
    return Place(scope, real, document, "")


def _text(path: Path, content: bytes) -> str:
    """The settings as text that can be edited, or UsageError naming the place that is wrong."""
    try:
        text = content.decode("utf-8").removeprefix(_BOM)
        require_shape(text)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}: line {line}: not UTF-8", "save the file as UTF-8") from error
    except NotJson as error:
        raise UsageError(
            f"{path}: not settings that can be edited: {error}",
            "mend that place; nothing was changed",
        ) from error
    return text


def _bytes(text: str, like: bytes | None) -> bytes:
    mark = _BOM if like is not None and like.startswith(_BOM.encode()) else ""
    try:
        return (mark + text).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "a path has bytes that JSON cannot hold", "install gsd-fsm under another path"
        ) from error


def hook_change() -> Change:
    source = current_content(packaged_hook())
    if source is None:
        raise CannotWrite(f"{packaged_hook()} is missing", "install gsd-fsm again")
    return Change(installed_hook(), current_content(installed_hook()), source, private=True)


def is_from_init(scope: str, path: Path, hook: dict[str, Any]) -> bool:
    """Whether this user's own `init` has put this hook into this file: others' are not to be run."""
    known = recall(path)
    if known is None:
        return False
    same = {**hook, "timeout": TIMEOUT} == _hook(scope, known.python)
    return same or known.describes(current_content(path))


def _hook(scope: str, python: str) -> dict[str, Any]:
    return entry(python, str(installed_hook().parent), f"settings-{scope}")


def plan_install(
    scope: str, start: str, python: Interpreter, cap: str | None, *, line: bool = False
) -> tuple[Change, Record]:
    """The change of the settings, with a status line if there shall be one, and what to remember."""
    path = follow_link(settings_path(scope, start))
    before = current_content(path)
    text = "{}\n" if before is None else _text(path, before)
    known = recall(path)
    if before is None:
        original = None
    elif known is not None and known.describes(before):
        original = known.original
    else:
        original = _bytes(_without(text, known), before)
    after = with_us(text, _hook(scope, python.path))
    set_by_us = known.cap if known is not None else None
    if cap is not None and cap_in(root(text).value) != cap:
        after, set_by_us = with_cap(after, cap), cap
    if line:
        after = with_status_line(after)
    written = _bytes(after, before)
    made = not path.parent.exists() or (known is not None and known.made_directory)
    record = Record(
        path, original, fingerprint(written), made, set_by_us, python.path, python.version
    )
    return Change(path, before, written), record


def install(hook: Change, settings: Change, record: Record) -> None:
    """The hook first, then the memory, then the settings: at no moment do they name what is not."""
    if hook.before != hook.after:
        # Bytecode is told apart by time and size only.
        shutil.rmtree(hook.path.parent / "__pycache__", ignore_errors=True)
        write_change(hook)
    warm(record.python, hook.path.parent)
    if settings.before != settings.after:
        _require_status_line(settings, hook.path.parent)
        remember(record)
        write_change(settings)


def warm(python: str, directory: Path) -> None:
    """Run the hook once, so that its bytecode is there when it is needed; CannotWrite if it fails."""
    command = [python, *SWITCHES, "-c", WARM_CODE, str(directory)]
    if problem := _try(command, directory):
        raise CannotWrite(f"{python} cannot run the hook: {problem}", "name another with --python")


def _require_status_line(settings: Change, directory: Path) -> None:
    """CannotWrite if the settings are to have a status line of ours that does not run."""
    line = our_status_line(root(_text(settings.path, settings.after or b"{}")).value)
    # One that stood there already may have come with a clone: only our own is run.
    problem = _try(started(line), directory) if line == status_line() else ""
    if problem:
        raise CannotWrite(f"the status line cannot be run: {problem}", "install gsd-fsm again")


def _try(command: list[str], directory: Path) -> str:
    """Why this command fails where no project is, or prints something there; "" if it does not."""
    try:
        done = subprocess.run(
            command,
            input=b"{}\n",
            capture_output=True,
            timeout=TIMEOUT,
            cwd=directory,
            env={**os.environ, "CLAUDE_PROJECT_DIR": str(directory)},
            check=False,
        )
    except OSError as error:
        return explain(error)
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT} seconds"
    told = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return told or "it failed" if done.returncode or done.stdout else ""


def _without(text: str, known: Record | None) -> str:
    original = _text(known.settings, known.original) if known and known.original else "{}"
    text = without_status_line(without_us(text, original))
    if known and known.cap is not None and cap_in(root(text).value) == known.cap:
        text = without_cap(text, original)
    return text


def plan_removal(path: Path) -> Change:
    """The settings as they were, or without what is ours where somebody else has written since."""
    before, known = current_content(path), recall(path)
    if before is None or (known is not None and known.describes(before)):
        after = known.original if known is not None and before is not None else None
        return Change(path, before, after)
    left = _without(_text(path, before), known)
    emptied = known is not None and known.original is None and root(left).value == {}
    return Change(path, before, None if emptied else _bytes(left, before))


def remove(change: Change) -> None:
    known = recall(change.path)
    if change.before != change.after:
        write_change(change)
    if change.after is None and known is not None and known.made_directory:
        with contextlib.suppress(OSError):  # somebody else has put something there
            change.path.parent.rmdir()
    forget(change.path)


def settings_with_us(start: str) -> dict[Path, str]:
    """Every settings file with something of ours, here or elsewhere on this machine, and its scope."""
    found = {place.path: place.scope for place in survey(start) if _has_us(place.document)}
    for record in all_records():
        place = _look("elsewhere", record.settings)
        # Who cannot look must not say that it is gone.
        if place.problem or _has_us(place.document):
            found.setdefault(record.settings, place.scope)
    return found


def _has_us(document: Any) -> bool:
    return bool(ours(document) or our_status_line(document))


def remove_hook() -> None:
    """Leave nothing in the user's data directory."""
    for record in all_records():
        forget(record.settings)
    shutil.rmtree(installed_hook().parent, ignore_errors=True)
    for directory in (data_directory() / "installed", data_directory()):
        with contextlib.suppress(OSError):  # other things are kept there
            directory.rmdir()


def is_shared(path: Path) -> bool:
    """Whether git would take the file into a commit."""
    try:
        done = subprocess.run(
            ["git", "-C", str(path.parent), "check-ignore", "-q", str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 1
