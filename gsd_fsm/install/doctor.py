"""Whether the installed hook works: what the settings say, and what happens when it is run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gsd_fsm.core.errors import GsdError, NotFound, UsageError
from gsd_fsm.documents.files import current_content
from gsd_fsm.documents.json_text import NotJson
from gsd_fsm.install.backup import recall
from gsd_fsm.install.environment import Row, surroundings
from gsd_fsm.install.hook_entries import EVENTS, MODULE, TIMEOUT, entry, ours, require_shape
from gsd_fsm.install.installer import client_directory, is_from_init, packaged_hook, survey
from gsd_fsm.install.interpreter import ask, flaw, fleeting
from gsd_fsm.install.plugin import HOOKS, ROOT, enabled, is_ours, read_json
from gsd_fsm.install.status_line import STATUS_LINE, our_status_line, started, status_line
from gsd_fsm.install.trial_run import Probe, loops, trials

LASTING = "gsd-fsm init --python PATH, with one that stays, such as /usr/bin/python3"


class Source(NamedTuple):
    """A file that registers hooks with the client, and the command that would mend it."""

    where: str
    path: Path
    document: Any
    problem: str
    fix: str
    may_run: Callable[[dict[str, Any]], bool]


def examine(start: str, plugin: Path | None) -> list[Row]:
    """Every check with its outcome; NotFound if our hook is not installed here at all."""
    found = list(_sources(start, plugin))
    lines = [source for source in found if source.document.get(STATUS_LINE)]
    installed = [source for source in found if source.problem or ours(source.document)]
    if not any(ours(source.document) for source in found):
        broken = "".join(f"; {source.problem}" for source in installed)
        raise NotFound(f"the hook is not installed here{broken}", "gsd-fsm init")
    rows = [row for source in installed for row in _examine(source)]
    rows += [row for source in lines for row in _status_line(source)]
    if not lines:
        rows.append(Row("here", "status line", "ok", "none; 'gsd-fsm init --status-line' adds one"))
    documents = {source.where: source.document for source in found}
    return rows + list(surroundings(start, documents))


def _sources(start: str, plugin: Path | None) -> Iterator[Source]:
    places = survey(start)
    for place in places:
        fix = f"gsd-fsm init --scope {place.scope}"
        may_run = partial(is_from_init, place.scope, place.path)
        where = f"{place.scope} settings"
        yield Source(where, place.path, place.document, place.problem, fix, may_run)
    if plugin is not None and not is_ours(plugin):
        raise UsageError(f"{plugin} is not a plugin of gsd-fsm", "gsd-fsm init --plugin DIR")
    if plugin is not None:
        yield _plugin(plugin, lambda _hook: True)  # whoever names a directory wants it run
    for directory in _enabled_plugins([place.document for place in places]):
        if directory != plugin:
            yield _plugin(directory, partial(_is_packaged, directory))


def _plugin(directory: Path, may_run: Callable[[dict[str, Any]], bool]) -> Source:
    # The client replaces this inside each argument before it starts the hook.
    root = json.dumps(str(directory))[1:-1].encode()
    content = (current_content(directory / HOOKS) or b"").replace(ROOT.encode(), root)
    try:
        document, problem = require_shape(content.decode("utf-8", "replace")), ""
    except NotJson as error:
        document, problem = {}, f"{directory / HOOKS}: {error}"
    fix = f"gsd-fsm init --plugin {shlex.quote(str(directory))}"
    return Source("plugin", directory / HOOKS, document, problem, fix, may_run)


def _is_packaged(directory: Path, hook: dict[str, Any]) -> bool:
    """Whether a plugin that was found by itself starts the hook of this version, and nothing else."""
    hooks = directory / "hooks"
    current = entry(str(hook.get("command")), str(hooks), "plugin")
    same = {**hook, "timeout": TIMEOUT} == current
    return same and current_content(hooks / f"{MODULE}.py") == current_content(packaged_hook())


def _enabled_plugins(documents: list[Any]) -> list[Path]:
    """Where the client keeps our plugin, if it was installed and is switched on."""
    known = read_json(client_directory() / "plugins" / "installed_plugins.json")
    try:
        return [
            Path(each["installPath"])
            for name in enabled(documents)
            for each in known["plugins"][name]
        ]
    except (TypeError, KeyError):
        return []


def _examine(source: Source) -> Iterator[Row]:
    if source.problem:
        yield Row(source.where, "settings", "failed", source.problem, "mend the file")
        return
    found = ours(source.document)
    missing = [event for event in EVENTS if event not in {each.event for each in found}]
    told = f"not registered for {', '.join(missing)}" if missing else f"all {len(EVENTS)} events"
    yield Row(source.where, "events", _state(not missing), told, source.fix)
    hooks = {json.dumps(each.hook, sort_keys=True): each.hook for each in found}
    for hook in hooks.values():
        yield from _examine_hook(source, hook)


def _state(good: Any) -> str:
    return "ok" if good else "failed"


def _examine_hook(source: Source, hook: dict[str, Any]) -> Iterator[Row]:
    if not source.may_run(hook):
        yield Row(source.where, "command", "failed", "not installed by you: not run", source.fix)
        return
    args = hook.get("args")
    words = [hook.get("command"), *(args if isinstance(args, list) else [])]
    python, *rest = [str(word) for word in words]
    directory, name = rest[-2:] if len(rest) > 1 else ("", "")
    current = entry(python, directory, name)
    good = {**hook, "timeout": TIMEOUT} == current
    told = "as this version writes it" if good else "not as this version writes it"
    yield Row(source.where, "command", _state(good), told, source.fix)
    seconds = hook.get("timeout")
    told = f"{seconds:g} seconds" if isinstance(seconds, int | float) else "not set"
    yield Row(source.where, "timeout", _state(seconds == TIMEOUT), told, source.fix)
    if not isinstance(args, list):
        return  # a line for a shell: what it would do depends on the shell
    yield from _interpreter(source, python, Path(directory))
    yield from _hook_file(source, Path(directory) / f"{MODULE}.py")
    limit = seconds if isinstance(seconds, int | float) and 0 < seconds <= 60 else TIMEOUT
    yield from _run(source, [python, *rest], limit)


def _status_line(source: Source) -> Iterator[Row]:
    """What the client would show of a loop, if its status line is ours."""
    line, record = our_status_line(source.document), recall(source.path)
    fix = f"{source.fix} --status-line"
    if not line:
        yield Row(source.where, "status line", "ok", "of another program: not run")
        return
    ours = record is not None and record.describes(current_content(source.path))
    if not (ours or line.startswith(status_line())):
        told = "not installed by you, or changed since: not run"
        yield Row(source.where, "status line", "failed", told, fix)
        return
    with loops() as scratch:
        scratch.start_loop()
        ran = Probe(scratch, started(line), TIMEOUT).stop(scratch.looping)
    shown = ran.out.startswith(b"gsd-fsm goal ") and ran.out.count(b"\n") == 1
    told = ran.problem or ("" if shown and not ran.code else "it does not show a live loop")
    yield Row(source.where, "status line", _state(not told), told, fix, ran.ms)


def _interpreter(source: Source, python: str, directory: Path) -> Iterator[Row]:
    if problem := flaw(python):
        yield Row(source.where, "interpreter", "failed", f"{python} {problem}", source.fix)
        return
    try:
        found, _ = ask(python)
    except GsdError as error:
        yield Row(source.where, "interpreter", "failed", error.message, source.fix)
        return
    yield Row(source.where, "interpreter", "ok", f"{python}, Python {found.version}")
    if danger := fleeting(python):
        yield Row(source.where, "interpreter", "note", f"{python} {danger}", LASTING)
    record = recall(source.path)
    if record is not None and record.python == python and record.version != found.version:
        told = f"it was Python {record.version} when the hook was installed"
        yield Row(source.where, "upgraded", "note", told, source.fix)
    kept = any((directory / "__pycache__").glob(f"{MODULE}*.{found.tag}.pyc"))
    told = "kept" if kept else f"none for Python {found.version}: a slow first start"
    yield Row(source.where, "bytecode", "ok" if kept else "note", told, source.fix)


def _hook_file(source: Source, path: Path) -> Iterator[Row]:
    content = current_content(path)
    if content is None:
        yield Row(source.where, "hook file", "failed", f"{path} is missing", source.fix)
        return
    same = content == current_content(packaged_hook())
    told = str(path) if same else f"{path} is of another version of gsd-fsm"
    yield Row(source.where, "hook file", _state(same), told, source.fix)


def _run(source: Source, command: list[str], seconds: float) -> Iterator[Row]:
    with loops() as scratch:
        scratch.start_loop()
        for name, ran, problem in trials(Probe(scratch, command, seconds)):
            yield Row(source.where, name, _state(not problem), problem, source.fix, ran.ms)
