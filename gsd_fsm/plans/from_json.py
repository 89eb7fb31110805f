"""Read a plan in JSON: waves of tasks, or tasks that name their wave."""

from __future__ import annotations

from gsd_fsm.documents.json_text import read_object
from gsd_fsm.documents.read import Object
from gsd_fsm.plans.plan import NO_WAVE, PlanDraft, Wave, task_name
from gsd_fsm.plans.task import first_of, items_of, make_task, read_header, text_of, wave_number


def read_json(text: str) -> PlanDraft:
    """Return the plan in this text; raise Malformed if it is not a JSON object."""
    draft = PlanDraft("json")
    found = read_object(text, "")
    read_header(found, draft)
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
        for task in items_of(wave.get("tasks")):
            if isinstance(task, Object):
                _add(draft, task, number)
            else:
                listed[task_name(text_of(task))] = number
    for task in items_of(found.get("tasks")):
        if not isinstance(task, Object):
            draft.report(found.line, "a task is not an object")
            return
        _add(draft, task, listed.pop(task_name(text_of(task.get("id"))), NO_WAVE))
    if listed and not draft.is_full:
        named = ", ".join(list(listed)[:10])
        draft.report(found.line, f"a wave names {named[:80]!r}, which is not in the plan")


def _wave(draft: PlanDraft, wave: Object, place: int) -> int:
    given = next((wave[key] for key in ("wave", "number", "id") if key in wave), place)
    number = wave_number(text_of(given))
    if not number:
        draft.report(wave.line_of("id"), f"wave {place}: its number is not a positive integer")
        return number
    mode = text_of(first_of(wave, "mode", "type")).lower()
    sequential = wave.get("sequential") is True or wave.get("parallel") is False
    title = " ".join(text_of(first_of(wave, "title", "name", "description")).split())
    draft.waves.setdefault(number, Wave(number, title, sequential or mode == "sequential"))
    return number


def _add(draft: PlanDraft, task: Object, wave: int) -> None:
    if not draft.is_full:
        draft.tasks.append(make_task(task, wave, draft))
