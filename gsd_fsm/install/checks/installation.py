"""Check that the hook is installed, current and working, by running it once."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.config.search_path import find_programs
from gsd_fsm.core.errors import GsdError, NotFound, UsageError
from gsd_fsm.core.system import WINDOWS
from gsd_fsm.documents.files import current_content
from gsd_fsm.documents.json_text import NotJson
from gsd_fsm.install import status_line
from gsd_fsm.install.checks.environment import check_environment
from gsd_fsm.install.checks.row import Row
from gsd_fsm.install.hook_entries import EVENTS, TIMEOUT, ours, read_settings
from gsd_fsm.install.hook_file import MODULE, packaged_hook
from gsd_fsm.install.installer import (
    client_directory,
    hook_problem,
    is_below_root,
    loaded,
    project_root,
    settings_entry,
    survey,
)
from gsd_fsm.install.interpreter import ask, choose, flaw, is_store_stub, risk
from gsd_fsm.install.plugin import (
    HOOKS,
    ROOT,
    Installed,
    fix_of,
    hook_of,
    is_ours,
    is_portable,
)
from gsd_fsm.install.plugin import installed as installed_plugins
from gsd_fsm.install.record import recall
from gsd_fsm.install.status_line import STATUS_LINE, our_status_line, to_arguments
from gsd_fsm.install.trial_run import trial

_NOT_OURS = "differs from what this version of 'gsd-fsm init' writes; not run"

_ELSEWHERE = "was installed before the project was moved or copied here; not run"


class Source(NamedTuple):
    """A file that registers hooks with the client, and the command that fixes it."""

    where: str
    document: Any
    problem: str
    fix: str
    expected: dict[str, Any] | None  # the only hook that may be run; None if `init` wrote none
    is_loaded: bool = True  # by a client that is started in this directory
    is_settings: bool = False


def check_installation(start: str, plugin: Path | None) -> list[Row]:
    """Return the result of every check; raise NotFound if the hook is not installed here."""
    sources = list(_sources(start, plugin))
    installed = [source for source in sources if source.problem or ours(source.document)]
    problem, fix = hook_problem(start)
    if not any(ours(source.document) for source in sources):
        broken = [source for source in installed if source.problem]
        raise NotFound(
            "; ".join([problem or "the hook is not installed", *(it.problem for it in broken)]),
            f"Run: {broken[0].fix if broken else fix or 'gsd-fsm init'}",
        )
    rows = [row for source in installed for row in _check_source(source, start)]
    if problem and is_below_root(start):
        rows.append(Row("here", "loaded hook", "failed", problem, fix, off=True))
    loads = [source for source in sources if source.is_loaded]
    with_line = [it for it in loads if it.is_settings and it.document.get(STATUS_LINE)]
    rows += [_check_status_line(source) for source in with_line]
    if not with_line:
        text = "none; to add one, run: gsd-fsm init --status-line"
        rows.append(Row("here", "status line", "ok", text))
    own = next((it.fix for it in loads if it.is_settings and ours(it.document)), "")
    init = own or ("gsd-fsm init --scope user" if is_below_root(start) else "gsd-fsm init")
    rows += check_environment(start, {each.where: each.document for each in loads}, init)
    places = list(dict.fromkeys(row.where for row in rows))
    return sorted(rows, key=lambda row: places.index(row.where))


def _sources(start: str, plugin: Path | None) -> Iterator[Source]:
    places = loaded(start)
    above = survey(start)[1:] if is_below_root(start) else []
    for place in (*places, *above):
        scope, path, document, problem = place
        fix, record = f"gsd-fsm init --scope {scope}", recall(path)
        expected = settings_entry(scope, record.python) if record is not None else None
        of = f" of {project_root(start)}" if place in above else ""
        fix = _edit(path) if problem else fix
        yield Source(f"{scope} settings{of}", document, problem, fix, expected, not of, True)
    if plugin is not None and not is_ours(plugin):
        raise UsageError(f"{plugin} is not a gsd-fsm plugin", "Run: gsd-fsm init --plugin DIR")
    known = installed_plugins([place.document for place in places], client_directory())
    named = [Installed(plugin, fix_of(plugin))] if plugin else []
    for each in {it.directory: it for it in (*known, *named)}.values():
        yield _plugin(each)


def _edit(path: Path) -> str:
    """Return the command that opens a file that the client cannot read."""
    name = shlex.quote(str(path))
    if path.exists() and not os.access(path, os.R_OK):
        return f"chmod u+r {name}"
    editor = "notepad" if WINDOWS else "vi"
    return f"{os.environ.get('VISUAL') or os.environ.get('EDITOR') or editor} {name}"


def _plugin(plugin: Installed) -> Source:
    # The client replaces this inside each argument before it runs the hook.
    directory = plugin.directory
    root = json.dumps(str(directory))[1:-1].encode()
    content = (current_content(directory / HOOKS) or b"").replace(ROOT.encode(), root)
    document, problem, expected = {}, "", None
    try:
        document = read_settings(content.decode("utf-8", "replace"))
    except NotJson as error:
        problem = f"{directory / HOOKS}: {error.message}"
    found = ours(document)
    # Anyone may have written this hook: it is run only if it is the one of this version.
    file = directory / "hooks" / f"{MODULE}.py"
    if found and current_content(file) == current_content(packaged_hook()):
        hook = found[0].hook
        python = None if is_portable(hook) else str(hook.get("command"))
        expected = hook_of(str(directory), python)
    return Source("plugin", document, problem, plugin.fix, expected)


def _check_source(source: Source, start: str) -> Iterator[Row]:
    if source.problem:
        yield Row(source.where, "settings", "failed", source.problem, source.fix)
        return
    found = ours(source.document)
    missing = [event for event in EVENTS if event not in {each.event for each in found}]
    text = f"not registered for {', '.join(missing)}" if missing else f"all {len(EVENTS)} events"
    yield Row(source.where, "events", _state(not missing), text, source.fix)
    hooks = {json.dumps(each.hook, sort_keys=True): each.hook for each in found}
    for hook in hooks.values():
        yield from _check_hook(source, hook, start)


def _state(good: Any) -> str:
    return "ok" if good else "failed"


def _is_of_another_place(source: Source, hook: dict[str, Any]) -> bool:
    """Return whether this user installed the hook, but in settings at another place."""
    scope = source.where.partition(" ")[0]
    wanted = settings_entry(scope, str(hook.get("command")))
    return source.is_settings and source.expected is None and hook == wanted


def _check_hook(source: Source, hook: dict[str, Any], start: str) -> Iterator[Row]:
    if {**hook, "timeout": TIMEOUT} != source.expected:
        text = _ELSEWHERE if _is_of_another_place(source, hook) else _NOT_OURS
        yield Row(source.where, "command", "failed", text, source.fix)
        return
    yield Row(source.where, "command", "ok", "matches this version")
    seconds = hook.get("timeout")
    text = f"{seconds:g} seconds" if isinstance(seconds, int | float) else "not set"
    yield Row(source.where, "timeout", _state(seconds == TIMEOUT), text, source.fix)
    directory = Path(hook["args"][-2])
    yield from _check_interpreter(source, hook, start)
    yield _check_hook_file(source, directory / f"{MODULE}.py")
    limit = seconds if isinstance(seconds, int | float) and 0 < seconds <= 60 else TIMEOUT
    with trial() as project:
        ran = project.block([hook["command"], *hook["args"]], limit)
    text = ran.problem or "blocks the stop of a live loop"
    yield Row(source.where, "trial run", _state(not ran.problem), text, source.fix, ran.ms)


def _check_interpreter(source: Source, hook: dict[str, Any], start: str) -> Iterator[Row]:
    if is_portable(hook):
        python = next(filter(_runs_hooks, find_programs(start, "python3", "python")), "")
        problem = "" if python else "there is no python3 on the PATH"
    else:
        python = str(hook["command"])
        problem = f"{python} {flaw(python)}" if flaw(python) else ""
    found = None
    try:
        found = ask(python)[0] if not problem else None
    except GsdError as error:
        problem = error.message
    if found is None:
        fix = source.fix if python else "gsd-fsm init"
        yield Row(source.where, "interpreter", "failed", problem, fix)
        return
    yield Row(source.where, "interpreter", "ok", f"{python}, Python {found.version}")
    if (danger := risk(python)) and not risk(choose(None, start).path):
        yield Row(source.where, "interpreter", "note", f"{python} {danger}", source.fix)
    if python != hook["command"]:
        return  # the first call compiles it
    is_compiled = any((Path(hook["args"][-2]) / "__pycache__").glob(f"{MODULE}*.{found.tag}.pyc"))
    text = "compiled" if is_compiled else f"not compiled for Python {found.version}: slow start"
    yield Row(source.where, "bytecode", "ok" if is_compiled else "note", text, source.fix)


def _runs_hooks(python: str) -> bool:
    with contextlib.suppress(GsdError):
        return not is_store_stub(python) and bool(ask(python))
    return False


def _check_hook_file(source: Source, path: Path) -> Row:
    content = current_content(path)
    is_current = content == current_content(packaged_hook())
    problem = "missing" if content is None else "not from this version"
    text = str(path) if is_current else f"{path} is {problem}"
    return Row(source.where, "hook file", _state(is_current), text, source.fix)


def _check_status_line(source: Source) -> Row:
    """Run the status line once if it is ours; it must show a live loop."""
    line, fix = our_status_line(source.document), f"{source.fix} --status-line"
    if not line:
        return Row(source.where, "status line", "ok", "belongs to another program; not run")
    if not line.startswith(status_line.command()):
        return Row(source.where, "status line", "failed", _NOT_OURS, fix)
    with trial() as project:
        ran = project.stop(to_arguments(line), TIMEOUT)
    is_shown = ran.out.startswith(b"gsd-fsm goal ") and ran.out.count(b"\n") == 1
    problem = ran.problem or ("" if is_shown else "it does not show a live loop")
    text = problem or "shows a live loop"
    return Row(source.where, "status line", _state(not problem), text, fix, ran.ms)
