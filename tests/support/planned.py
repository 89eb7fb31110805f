"""Projects with a plan of three tasks: two in parallel, then one that follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsd_fsm.core.journal.journal import Author, Journal
from gsd_fsm.engine.context import Context
from tests.support.repositories import git

if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop
    from tests.support.command_line import Here

AGENT = Author("agent", "s-1")


def task_text(number: str, wave: int = 1, depends: str = "") -> str:
    """Return a task of a plan that writes one file."""
    more = f' depends="{depends}"' if depends else ""
    return f"""<task id="{number}" wave="{wave}"{more}>
  <files><file action="create">{number}.py</file></files>
  <action>Write {number}.</action>
  <verify><check type="file">{number}.py exists</check></verify>
  <done>It is written.</done>
</task>
"""


PLAN = "---\nphase: 1\ntitle: Parts\n---\n" + task_text("01") + task_text("02") + task_text("03", 2)


def start_planned(here: Here, mode: str = "yolo", settings: str = "", plan: str = PLAN) -> Context:
    """Start a loop with this plan; return the context of its agent."""
    path = here.root / ".gsd" / "plans" / "phase-1" / "plan.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plan)
    (here.gsd / "config.toml").write_text(settings)
    session = {"CLAUDE_CODE_SESSION_ID": "s-1"}
    here.ok("start", "execute", "--phase", "1", "--mode", mode, env=session)
    return Context(here.root, author=AGENT)


def start_committing(here: Here, settings: str = "") -> Context:
    """Start a loop with the plan in a repository, in which the engine commits."""
    git(here.root, "init", "-q", "--template=")
    git(here.root, "commit", "-q", "--allow-empty", "-m", "first")
    for number in ("01", "02", "03"):
        (here.root / f"{number}.py").write_text(f"{number}\n")
    return start_planned(here, settings=f"commit = true\n{settings}")


def loop_of(context: Context) -> Loop:
    """Return the loop as a new reader of the journal sees it."""
    return context.loop(Journal(context.gsd).read())


def commits(here: Here) -> list[str]:
    """Return the subjects of all commits, the last one first."""
    return git(here.root, "log", "--format=%s").splitlines()


def tags(here: Here) -> dict[str, str]:
    """Return the commits of the checkpoints, by the last part of their tags."""
    form = "--format=%(refname:lstrip=-1) %(objectname)"
    lines = git(here.root, "for-each-ref", form, "refs/tags/gsd/checkpoint").splitlines()
    return dict(line.split(" ") for line in lines)
