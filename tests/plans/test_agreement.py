"""A plan says the same in Markdown and in JSON, whatever it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.plans.plan import Plan, PlanTask
from tests.plans.test_load import loaded

if TYPE_CHECKING:
    import pytest

Spec = dict[str, Any]
words = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=20
).map(lambda text: " ".join(["x", *text.split()]))
names = st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True).filter(lambda name: name != "none")
paths = st.from_regex(r"[a-z]{1,8}/[a-z]{1,8}\.py", fullmatch=True)
actions = st.lists(
    words | st.sampled_from(["", "```", "  <b>", "</verify>", "<done>", "a && b", "<task>"]),
    max_size=6,
).map(lambda lines: "\n".join(["Do", *lines, "so."]))
checks = st.fixed_dictionaries(
    {"type": st.sampled_from(["file", "content", "test", "manual", "console"]), "text": words},
    optional={"cmd": words},
)
specs = st.lists(
    st.fixed_dictionaries({
        "wave": st.integers(1, 4), "title": words, "action": actions, "done": words,
        "files": st.lists(st.tuples(paths, st.sampled_from(["create", "modify", ""])), max_size=3),
        "tests": st.sampled_from(["true", "false", "existing"]),
        "test_files": st.lists(paths, max_size=2),
        "checks": st.lists(checks, min_size=1, max_size=3), "skills": st.lists(names, max_size=3),
        "libraries": st.lists(names, max_size=3), "reqs": names, "type": st.sampled_from(["fix", ""]),
    }),
    min_size=1, max_size=4,
)  # fmt: skip


def needs(found: list[Spec], spec: Spec) -> list[str]:
    """What a task of this wave may depend on: all of the waves before."""
    return [f"{n:02d}" for n, other in enumerate(found, 1) if other["wave"] < spec["wave"]]


def as_markdown(found: list[Spec]) -> str:
    lines = []
    for number, it in enumerate(found, 1):
        files = "".join(f'<file action="{how}">{path}</file>\n' for path, how in it["files"])
        tests = "".join(f"<file>{path}</file>" for path in it["test_files"])
        proofs = "".join(
            f'<check type="{check["type"]}"'
            + (f" cmd={quoteattr(check['cmd'])}" if "cmd" in check else "")
            + f">{escape(check['text'])}</check>\n"
            for check in it["checks"]
        )
        action = it["action"].replace("\n", "\n      ")
        lines.append(
            f'<task id="{number:02d}" wave="{it["wave"]}" depends="{",".join(needs(found, it))}" '
            f'reqs=\'{it["reqs"]}\' test_required="{it["tests"]}" type="{it["type"]}">\n'
            f"  <title>{escape(it['title'])}</title>\n  <files>\n{files}</files>\n"
            f"  <test_files>{tests}</test_files>\n  <action>\n      {action}\n  </action>\n"
            f"  <libraries>{', '.join(it['libraries']) or 'none'}</libraries>\n"
            f"  <verify>\n{proofs}</verify>\n  <done>{escape(it['done'])}</done>\n"
            f"  <skills>{', '.join(it['skills']) or 'none'}</skills>\n</task>\n"
        )
    return "\n".join(lines)


def as_json(found: list[Spec]) -> str:
    tasks = [
        {
            **{name: it[name] for name in ("wave", "title", "action", "done", "skills", "reqs")},
            "id": f"{number:02d}",
            "depends_on": needs(found, it),
            "files": [{"path": path, "action": how} for path, how in it["files"]],
            "test_required": it["tests"],
            "test_files": it["test_files"],
            "libraries": it["libraries"],
            "verify": it["checks"],
            "type": it["type"],
        }
        for number, it in enumerate(found, 1)
    ]
    return json.dumps({"tasks": tasks})


def said(task: PlanTask) -> PlanTask:
    """The task without its lines, which differ."""
    return task._replace(line=0, checks=tuple(check._replace(line=0) for check in task.checks))


@settings(max_examples=40)
@given(specs)
def test_both_formats_give_the_same_tasks(
    tmp_path_factory: pytest.TempPathFactory, found: list[Spec]
) -> None:
    place: Path = tmp_path_factory.mktemp("plans")
    one: Plan = loaded(place, as_markdown(found))
    other: Plan = loaded(place, as_json(found))
    assert [said(task) for task in one.tasks] == [said(task) for task in other.tasks]
    assert (one.waves, one.warnings) == (other.waves, other.warnings)
    assert sorted(task.action for task in one.tasks) == sorted(it["action"] for it in found)
    assert sum(len(task.checks) for task in one.tasks) == sum(len(it["checks"]) for it in found)
