"""Check that the hook is installed, current and working, by running it once."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.errors import GsdError, NotFound, UsageError
from gsd_fsm.documents.files import current_content
from gsd_fsm.documents.json_text import NotJson
from gsd_fsm.install import status_line
from gsd_fsm.install.checks.environment import Row, check_environment
from gsd_fsm.install.hook_entries import EVENTS, TIMEOUT, entry, ours, read_settings
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
from gsd_fsm.install.interpreter import LASTING, ask, flaw, risk
from gsd_fsm.install.plugin import HOOKS, ROOT, is_ours
from gsd_fsm.install.plugin import installed as installed_plugins
from gsd_fsm.install.record import recall
from gsd_fsm.install.status_line import STATUS_LINE, our_status_line, to_arguments
from gsd_fsm.install.trial_run import trial

_NOT_OURS = "differs from what this version of 'gsd-fsm init' writes; not run"


class Source(NamedTuple):
    """A file that registers hooks with the client, and the command that fixes it."""

    where: str
    document: Any
    problem: str
    fix: str
    expected: dict[str, Any] | None  # the only hook that may be run; None if `init` wrote none
    is_loaded: bool = True  # by a client that is started in this directory


def check_installation(start: str, plugin: Path | None) -> list[Row]:
    """Return the result of every check; raise NotFound if the hook is not installed here."""
    sources = list(_sources(start, plugin))
    installed = [source for source in sources if source.problem or ours(source.document)]
    problem, fix = hook_problem(start)
    if not any(ours(source.document) for source in sources):
        broken = "".join(f"; {source.problem}" for source in installed)
        raise NotFound(
            f"{problem or 'the hook is not installed here'}{broken}",
            f"Run: {fix or 'gsd-fsm init'}",
        )
    rows = [row for source in installed for row in _check_source(source)]
    if problem and is_below_root(start):
        rows.append(Row("here", "loaded hook", "failed", problem, fix, off=True))
    loads = [source for source in sources if source.is_loaded]
    with_line = [source for source in loads if source.document.get(STATUS_LINE)]
    rows += [_check_status_line(source) for source in with_line]
    if not with_line:
        text = "none; to add one, run: gsd-fsm init --status-line"
        rows.append(Row("here", "status line", "ok", text))
    return [*rows, *check_environment(start, {each.where: each.document for each in loads})]


def _sources(start: str, plugin: Path | None) -> Iterator[Source]:
    places = loaded(start)
    above = survey(start)[1:] if is_below_root(start) else []
    for place in (*places, *above):
        scope, path, document, problem = place
        fix, record = f"gsd-fsm init --scope {scope}", recall(path)
        expected = settings_entry(scope, record.python) if record is not None else None
        of = f" of {project_root(start)}" if place in above else ""
        yield Source(f"{scope} settings{of}", document, problem, fix, expected, not of)
    if plugin is not None and not is_ours(plugin):
        raise UsageError(f"{plugin} is not a gsd-fsm plugin", "Run: gsd-fsm init --plugin DIR")
    known = installed_plugins([place.document for place in places], client_directory())
    for directory in dict.fromkeys([*([plugin] if plugin else []), *known]):
        yield _plugin(directory)


def _plugin(directory: Path) -> Source:
    # The client replaces this inside each argument before it runs the hook.
    root = json.dumps(str(directory))[1:-1].encode()
    content = (current_content(directory / HOOKS) or b"").replace(ROOT.encode(), root)
    document, problem, expected = {}, "", None
    try:
        document = read_settings(content.decode("utf-8", "replace"))
    except NotJson as error:
        problem = f"{directory / HOOKS}: {error.message}"
    hook = directory / "hooks" / f"{MODULE}.py"
    found = ours(document)
    # Anyone may have written this hook: it is run only if it is the one of this version.
    if found and current_content(hook) == current_content(packaged_hook()):
        expected = entry(str(found[0].hook.get("command")), str(hook.parent), "plugin")
    fix = f"gsd-fsm init --plugin {shlex.quote(str(directory))}"
    return Source("plugin", document, problem, fix, expected)


def _check_source(source: Source) -> Iterator[Row]:
    if source.problem:
        fix = "Fix the file and retry."
        yield Row(source.where, "settings", "failed", source.problem, fix)
        return
    found = ours(source.document)
    missing = [event for event in EVENTS if event not in {each.event for each in found}]
    text = f"not registered for {', '.join(missing)}" if missing else f"all {len(EVENTS)} events"
    yield Row(source.where, "events", _state(not missing), text, source.fix)
    hooks = {json.dumps(each.hook, sort_keys=True): each.hook for each in found}
    for hook in hooks.values():
        yield from _check_hook(source, hook)


def _state(good: Any) -> str:
    return "ok" if good else "failed"


def _check_hook(source: Source, hook: dict[str, Any]) -> Iterator[Row]:
    if {**hook, "timeout": TIMEOUT} != source.expected:
        yield Row(source.where, "command", "failed", _NOT_OURS, source.fix)
        return
    yield Row(source.where, "command", "ok", "matches this version")
    seconds = hook.get("timeout")
    text = f"{seconds:g} seconds" if isinstance(seconds, int | float) else "not set"
    yield Row(source.where, "timeout", _state(seconds == TIMEOUT), text, source.fix)
    python, directory = hook["command"], Path(hook["args"][-2])
    yield from _check_interpreter(source, python, directory)
    yield _check_hook_file(source, directory / f"{MODULE}.py")
    limit = seconds if isinstance(seconds, int | float) and 0 < seconds <= 60 else TIMEOUT
    with trial() as project:
        ran = project.block([python, *hook["args"]], limit)
    text = ran.problem or "blocks the stop of a live loop"
    yield Row(source.where, "trial run", _state(not ran.problem), text, source.fix, ran.ms)


def _check_interpreter(source: Source, python: str, directory: Path) -> Iterator[Row]:
    try:
        problem = f"{python} {flaw(python)}" if flaw(python) else ""
        found = ask(python)[0] if not problem else None
    except GsdError as error:
        problem, found = error.message, None
    if found is None:
        yield Row(source.where, "interpreter", "failed", problem, source.fix)
        return
    yield Row(source.where, "interpreter", "ok", f"{python}, Python {found.version}")
    if danger := risk(python):
        yield Row(source.where, "interpreter", "note", f"{python} {danger}", LASTING)
    is_compiled = any((directory / "__pycache__").glob(f"{MODULE}*.{found.tag}.pyc"))
    text = "compiled" if is_compiled else f"not compiled for Python {found.version}: slow start"
    yield Row(source.where, "bytecode", "ok" if is_compiled else "note", text, source.fix)


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
