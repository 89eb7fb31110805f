"""A plan in JSON: waves of tasks, or tasks that name their wave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.plans import values
from gsd_fsm.plans.plan import Check, PlanDraft, PlanFile, TaskDraft, Wave, task_name

# An unclosed string is one too: that keeps the scan linear, and the parser refuses it anyway.
_TOKEN = re.compile(r'"id"\s*:|"[^"\\]*(?:\\.[^"\\]*)*"?|[{}]', re.DOTALL)


class _Object(dict[str, Any]):
    """An object of the text that knows its line: that of its id, else the one it begins in."""

    __slots__ = ("line",)
    line: int


def read_json(text: str) -> PlanDraft:
    """Everything that the text says; what is wrong with it stands in `problems`."""
    draft = PlanDraft("json")
    lines = _lines_of_objects(text)

    def located(members: list[tuple[str, Any]]) -> _Object:
        found = _Object(members)
        found.line = next(lines)
        return found

    try:
        found = json.loads(text, object_pairs_hook=located, parse_constant=lambda _name: None)
    except json.JSONDecodeError as error:
        draft.wrong(error.lineno, f"not valid JSON: {error.msg}")
        return draft
    except (RecursionError, ValueError):
        draft.wrong(1, "not valid JSON: nested too deeply, or a number too long")
        return draft
    if not isinstance(found, _Object):
        draft.wrong(1, "a plan is a JSON object")
        return draft
    draft.phase = values.phase_of(found.get("phase"))
    draft.title = " ".join(_text(found.get("title") or found.get("name")).split())
    draft.counts = {
        name: found.get(name, found.get(total))
        for name, total in (("wave_count", "total_waves"), ("task_count", "total_tasks"))
    }
    draft.estimated_tokens = _text(found.get("estimated_tokens")) or None
    draft.must_haves = tuple(filter(None, map(_text, _list(found.get("must_haves")))))
    _read_tasks(draft, found)
    return draft


def _lines_of_objects(text: str) -> Iterator[int]:
    """The line of every object, in the order in which they end: as the parser makes them."""
    line, counted = 1, 0
    begun: list[int] = []
    for token in _TOKEN.finditer(text):
        if token[0][0] == '"' and token[0][-1] != ":":
            continue
        line += text.count("\n", counted, token.start())
        counted = token.start()
        if token[0] == "{":
            begun.append(line)
        elif token[0] == "}":
            yield begun.pop() if begun else line
        elif begun:
            begun[-1] = line


def _read_tasks(draft: PlanDraft, found: _Object) -> None:
    listed: dict[str, int] = {}  # tasks that a wave only names
    waves = found.get("waves")  # some plans only count them here
    for place, wave in enumerate(waves if isinstance(waves, list) else (), 1):
        if not isinstance(wave, _Object):
            draft.wrong(found.line, f"wave {place} is no object")
            return
        number = _wave(draft, wave, place)
        for task in _list(wave.get("tasks")):
            if isinstance(task, _Object):
                _add(draft, task, number)
            else:
                listed[task_name(_text(task))] = number
    for task in _list(found.get("tasks")):
        if not isinstance(task, _Object):
            draft.wrong(found.line, "a task is no object")
            return
        _add(draft, task, listed.pop(task_name(_text(task.get("id"))), None))
    if listed and not draft.is_full:
        named = ", ".join(list(listed)[:10])
        draft.wrong(found.line, f"a wave names {named[:80]!r}, which is not in the plan")


def _add(draft: PlanDraft, task: _Object, wave: int | None) -> None:
    if not draft.is_full:
        draft.tasks.append(_task(draft, task, wave))


def _wave(draft: PlanDraft, wave: _Object, place: int) -> int:
    given = next((wave[key] for key in ("wave", "number", "id") if key in wave), place)
    number = values.number_of(_text(given))
    mode = _text(wave.get("mode") or wave.get("type")).lower()
    sequential = wave.get("sequential") is True or wave.get("parallel") is False
    titles = (wave.get(name) for name in ("title", "name", "description"))
    title = " ".join(_text(next(filter(None, titles), "")).split())
    if number:
        found = Wave(number, title, sequential or mode == "sequential")
        draft.waves.setdefault(number, found)
    else:
        draft.wrong(wave.line, f"wave {place}: its number is not a number above zero")
    return number


def _task(draft: PlanDraft, found: _Object, wave: int | None) -> TaskDraft:
    def said(*names: str) -> Any:
        return next((found[name] for name in names if found.get(name) is not None), None)

    wanted = said("test_required")
    return TaskDraft(
        number=_text(found.get("id")),
        line=found.line,
        wave=wave if said("wave") is None else values.number_of(_text(said("wave"))),
        title=_text(said("title", "name")),
        depends=_names(said("depends", "depends_on", "dependsOn", "blockedBy")),
        files=tuple(map(_file, _list(said("files")))),
        action=values.dedented("\n" + _joined(said("action", "description"))),
        libraries=_names(said("libraries"), blanks=True),
        checks=tuple(_checks(draft, _list(said("verify")), found.line)),
        done=" ".join(_joined(said("done")).split()),
        skills=_names(said("skills")),
        reqs=", ".join(map(_text, _list(said("reqs")))),
        test_required=values.tests_wanted("true" if wanted is True else _text(wanted)),
        test_files=tuple(_file(item).path for item in _list(said("test_files"))),
        commit_type=values.commit_type(_text(said("type"))),
    )


def _checks(draft: PlanDraft, listed: list[Any], line: int) -> Iterator[Check]:
    for item in listed:
        if isinstance(item, _Object):
            names = ("check", "text", "value", "description")
            text = next((item[name] for name in names if item.get(name)), "") or _claim(item)
            command = _text(item.get("cmd") or item.get("command"))
            check = values.check_of(_text(item.get("type")), _text(text), command, item.line)
        else:
            check = values.check_of("", _text(item), None, line)
        if check.text:
            yield check
        else:
            draft.wrong(check.line, "a check that says nothing")


def _claim(item: _Object) -> str:
    """The words of a check that names its file, and what is to be found in it, by themselves."""
    path = _text(item.get("path") or item.get("file"))
    wanted = _text(item.get("contains") or item.get("pattern") or item.get("content"))
    return f'{path} contains "{wanted}"' if wanted else path


def _file(item: Any) -> PlanFile:
    if not isinstance(item, _Object):
        return PlanFile(_text(item), "")
    path = _text(item.get("path") or item.get("file"))
    return PlanFile(path, values.file_action(_text(item.get("action"))))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return clean(str(value)).strip()


def _joined(value: Any) -> str:
    lines = [clean(item) if isinstance(item, str) else _text(item) for item in _list(value)]
    return "\n".join(lines)


def _names(value: Any, *, blanks: bool = False) -> tuple[str, ...]:
    split = values.items_in if blanks else values.names_in
    if not isinstance(value, list):
        return split(_text(value))
    found = tuple(filter(None, map(_text, value)))
    return () if [name.lower() for name in found] == ["none"] else found
