"""Windows has drives: a plan need not be on that of its project."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support.command_line import Here
from tests.support.events import write
from tests.support.verification import FILE, document

OTHER_DRIVE = Path(__file__).anchor


def test_plan_on_another_drive_is_followed(here: Here) -> None:
    assert here.root.drive != Path(OTHER_DRIVE).drive
    with tempfile.TemporaryDirectory(dir=Path(OTHER_DRIVE, "tmp")) as folder:
        plan = write(Path(folder, "plan.md"), document(FILE))
        here.start("execute", "--plan", str(plan), "--mode", "yolo")
        assert here.lines()[-1]["data"]["plan"]["file"] == str(plan)
        assert [task["id"] for task in here.ok("next", "--json").json["tasks"]] == ["T01"]
