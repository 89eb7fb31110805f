"""A planned phase: its plan, the subagents that do its tasks, and the reports about them."""

from __future__ import annotations

from tests.support.e2e.fake_model import Turn, bash, delegate, say
from tests.support.e2e.project import Rig
from tests.support.repositories import git


def plan(rig: Rig, text: str, settings: str = 'mode = "yolo"\n') -> None:
    """Write the plan of phase 1 and the settings, in a repository with one commit."""
    place = rig.gsd / "plans" / "phase-1"
    place.mkdir(parents=True)
    (place / "plan.md").write_text(text)
    (rig.gsd / "config.toml").write_text(settings)
    git(rig.root, "config", "user.name", "T")
    git(rig.root, "config", "user.email", "t@example.org")
    git(rig.root, "commit", "-q", "--allow-empty", "-m", "first")


def subagent(rig: Rig, name: str, *attempts: tuple[str, str]) -> None:
    """Let the subagents of a task run these commands and say these last words, one pair each."""
    lane = rig.model.lane(name, f"SUBTASK {name}")
    for work, words in attempts:
        lane.then(bash(f"gsd-fsm next {name}; {work}"), say(words))


def hand_over(name: str, agent: str = "general-purpose") -> Turn:
    """Let a subagent do this task or review."""
    prompt = f"{name}: do what 'gsd-fsm next {name}' prints."
    return delegate(prompt, background=False, agent=agent)


def report(name: str, words: str = "TASK COMPLETE") -> Turn:
    return bash(f"gsd-fsm report {name} <<'REPORT'\n{words}\nREPORT")
