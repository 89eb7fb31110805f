"""Read a plan in JSON: waves of tasks, or tasks that name their wave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gsd_fsm.core.text.sanitize import clean
from gsd_fsm.documents.json_text import read_object
from gsd_fsm.documents.read import Object
from gsd_fsm.plans import values
from gsd_fsm.plans.phase_name import phase_of
from gsd_fsm.plans.plan import (
    INVALID_WAVE,
    NO_WAVE,
    Check,
    PlanDraft,
    PlanFile,
    PlanTask,
    Wave,
    task_name,
)


def read_json(text: str) -> PlanDraft:
    """Return the plan in this text; raise Malformed if it is not a JSON object."""
    draft = PlanDraft("json")
    found = read_object(text, "")
    draft.phase = phase_of(found.get("phase"))
    draft.title = " ".join(_text(_first(found, "title", "name")).split())
    draft.counts = {
        "wave_count": found.get("wave_count", found.get("total_waves")),
        "task_count": found.get("task_count", found.get("total_tasks")),
    }
    draft.estimated_tokens = _text(found.get("estimated_tokens")) or None
    draft.must_haves = tuple(filter(None, map(_text, _list(found.get("must_haves")))))
    _read_tasks(draft, found)
    return draft


def _read_tasks(draft: PlanDraft, found: Object) -> None:
    listed: dict[str, int] = {}  # tasks that a wave only names
    waves = found.get("waves")  # some plans only count them here
    for place, wave in enumerate(waves if isinstance(waves, list) else (), 1):
        if not isinstance(wave, Object):
            draft.report(found.line, f"wave {place} is not an object")
            return
        number = _wave(draft, wave, place)
        for task in _list(wave.get("tasks")):
            if isinstance(task, Object):
                _add(draft, task, number)
            else:
                listed[task_name(_text(task))] = number
    for task in _list(found.get("tasks")):
        if not isinstance(task, Object):
            draft.report(found.line, "a task is not an object")
            return
        _add(draft, task, listed.pop(task_name(_text(task.get("id"))), NO_WAVE))
    if listed and not draft.is_full:
        named = ", ".join(list(listed)[:10])
        draft.report(found.line, f"a wave names {named[:80]!r}, which is not in the plan")


def _wave(draft: PlanDraft, wave: Object, place: int) -> int:
    given = next((wave[key] for key in ("wave", "number", "id") if key in wave), place)
    number = values.wave_number(_text(given))
    if number == INVALID_WAVE:
        draft.report(wave.line_of("id"), f"wave {place}: its number is not a positive integer")
        return number
    mode = _text(_first(wave, "mode", "type")).lower()
    sequential = wave.get("sequential") is True or wave.get("parallel") is False
    title = " ".join(_text(_first(wave, "title", "name", "description")).split())
    draft.waves.setdefault(number, Wave(number, title, sequential or mode == "sequential"))
    return number


def _add(draft: PlanDraft, task: Object, wave: int) -> None:
    if not draft.is_full:
        draft.tasks.append(_task(draft, task, wave))


def _task(draft: PlanDraft, found: Object, wave: int) -> PlanTask:
    line = found.line_of("id")
    own_wave = found.get("wave")
    needed = _first(found, "test_required")
    task = PlanTask(
        id="",
        number=_text(found.get("id")),
        wave=wave if own_wave is None else values.wave_number(_text(own_wave)),
        title=_text(_first(found, "title", "name")),
        depends=_names(_first(found, "depends", "depends_on", "dependsOn", "blockedBy")),
        files=tuple(map(_file, _list(found.get("files")))),
        action=values.dedent("\n" + _lines(_first(found, "action", "description"))),
        libraries=_names(found.get("libraries"), blanks=True),
        checks=tuple(_checks(draft, _list(found.get("verify")), line)),
        done=_lines(found.get("done")),
        skills=_names(found.get("skills")),
        reqs=", ".join(map(_text, _list(found.get("reqs")))),
        test_required="true" if needed is True else _text(needed),
        test_files=tuple(_file(item).path for item in _list(found.get("test_files"))),
        commit_type=_text(found.get("type")),
        line=line,
    )
    return values.normalized(task)


def _checks(draft: PlanDraft, listed: list[Any], line: int) -> Iterator[Check]:
    for item in listed:
        if isinstance(item, Object):
            text = _text(_first(item, "check", "text", "value", "description")) or _claim(item)
            command = _text(_first(item, "cmd", "command"))
            check = values.check_of(_text(item.get("type")), text, command, item.line_of("id"))
        else:
            check = values.check_of("", _text(item), None, line)
        if check.text:
            yield check
        else:
            draft.report(check.line, "a check is empty")


def _claim(item: Object) -> str:
    """Return the text of a check that has its file, and the text to find in it, as members."""
    path = _text(_first(item, "path", "file"))
    wanted = _text(_first(item, "contains", "pattern", "content"))
    return f'{path} contains "{wanted}"' if wanted else path


def _file(item: Any) -> PlanFile:
    if not isinstance(item, Object):
        return PlanFile(_text(item), "")
    return values.file_of(_text(_first(item, "path", "file")), _text(item.get("action")))


def _first(found: Object, *names: str) -> Any:
    """Return the first of these members that says something."""
    return next((found[name] for name in names if found.get(name) not in (None, "")), None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return clean(str(value)).strip()


def _lines(value: Any) -> str:
    lines = [clean(item) if isinstance(item, str) else _text(item) for item in _list(value)]
    return "\n".join(lines)


def _names(value: Any, *, blanks: bool = False) -> tuple[str, ...]:
    if isinstance(value, list):
        return values.list_of(list(map(_text, value)))
    return values.split_items(_text(value)) if blanks else values.split_names(_text(value))
