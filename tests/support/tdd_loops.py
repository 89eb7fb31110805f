"""Planned loops whose tasks are developed test first."""

from __future__ import annotations

from tests.support.command_line import Here
from tests.support.plan_loops import start_plan

TASK = """<task id="{id}" wave="1">
  <files><file>a.py</file><file>b.py</file><file>sub/c.py</file></files>
  <test_files><file>test_a.py</file></test_files>
  <test_required>{tests}</test_required>
  <action>Write it.</action>
  <verify><check type="file">a.py exists</check></verify>
  <done>It adds.</done>
</task>
"""
TDD_PLAN = (
    "---\nphase: 1\ntitle: Tests first\n---\n"
    + TASK.format(id="01", tests="true")
    + TASK.format(id="02", tests="existing")
    + TASK.format(id="03", tests="false")
)


def start_tdd(here: Here, test_command: str | None, more: str = "") -> Here:
    """Start a loop with the plan and one test file; `test_command` runs the tests."""
    (here.root / "test_a.py").write_text("a test\n")
    command = "" if test_command is None else f"ci_test = '{test_command}'\n"
    return start_plan(here, plan=TDD_PLAN, settings=command + more)
