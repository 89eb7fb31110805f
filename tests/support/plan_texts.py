"""Texts of plans, and the results of loading them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gsd_fsm.plans.load import BrokenPlan, load_plan
from gsd_fsm.plans.plan import Plan
from tests.support.events import write

LOOP_MECHANISM = Path(__file__).parents[1] / "plans" / "loop-mechanism.md"
TASK = """<task id="{id}" wave="{wave}"{more}>
  <files><file action="create">{id}.py</file></files>
  <action>Write {id}.</action>
  <verify><check type="file">{id}.py exists</check></verify>
  <done>It is there.</done>
</task>
"""
AROUND = """<task id="01" wave="1">
  <action>
{action}
  </action>
  <libraries>none</libraries>
  <verify><check type="file">a.py exists</check></verify>
  <done>It is there.</done>
</task>
"""


def task(number: str, wave: int = 1, depends: str = "") -> str:
    more = f' depends="{depends}"' if depends else ""
    return TASK.format(id=number, wave=wave, more=more)


def task_without_wave(number: str, depends: str = "") -> str:
    return task(number, depends=depends).replace(' wave="1"', "")


def json_task(number: object, **more: Any) -> dict[str, Any]:
    return {"id": number, "action": "Do it", "done": "Done", "verify": ["look"], **more}


def json_plan(*tasks: Any, **more: Any) -> str:
    return json.dumps({"phase": 3, "title": "P", "tasks": list(tasks), **more}, indent=2)


def loaded(tmp_path: Path, text: str | bytes, name: str = "plan.md") -> Plan:
    return load_plan(write(tmp_path / name, text))


def broken(tmp_path: Path, text: str | bytes, name: str = "plan.md") -> list[tuple[int, str]]:
    """Return line and text of every problem of this plan."""
    with pytest.raises(BrokenPlan) as error:
        loaded(tmp_path, text, name)
    for problem in error.value.problems[:20]:
        assert f"{tmp_path / name}:{problem.line}: {problem.what}" in error.value.message
    return [(problem.line, problem.what) for problem in error.value.problems]


def require_problem(tmp_path: Path, text: str | bytes, line: int, what: str) -> None:
    found = broken(tmp_path, text)
    assert any(it[0] == line and what in it[1] for it in found), found
