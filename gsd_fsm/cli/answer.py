"""`answer`: the word that a loop waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from gsd_fsm.cli.call import Call, Event, require_trust, verb
from gsd_fsm.cli.checkpoints import open_gate
from gsd_fsm.cli.plan_change import accepts_change
from gsd_fsm.cli.planned import asks, plan_path, project_of
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.flow import may_decide
from gsd_fsm.core.fold import World
from gsd_fsm.core.loop import Loop, is_planned
from gsd_fsm.core.question import may_decline
from gsd_fsm.texts import keep, read_text

NO = re.compile(r"\W*(?:n|no|nope)\b", re.IGNORECASE)


DECLINED = "the user declined:"


@click.command()
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE|-", help="Read the answer from a file or stdin.")
@verb
def answer(call: Call, *, text: str | None, file: str | None) -> None:
    """Answer the question a loop waits for; it goes on where it was."""
    words = read_text(text, file, "the answer")
    if words is None:
        raise UsageError("an answer needs its text", "gsd-fsm answer TEXT")
    text = keep(words, 4_000)
    declined = NO.match(text) is not None
    branch = take_branch(call, declined)

    def build(loop: Loop, _world: World, _now: int) -> Iterator[Event]:
        # A no to the engine's own question must not be overrun.
        refused = f"{DECLINED} {loop.question}" if may_decline(loop.asked) else ""
        yield call.event("answer", loop, {"text": text})
        if refused and declined:
            pause = {"code": "manual", "reason": refused, "declined": True}
            yield call.event("pause", loop, pause, by="cli")
            return
        if branch and not declined:
            yield from accepts_change(call, loop)
        yield from asks(call, loop)

    journal, loop = call.append(build)
    open_gate(call, journal, loop)
    asked = f" {loop.question}" if loop.status == "waiting" else ""
    call.acknowledge(journal, loop, f"Answered.{branch}{asked}")


def take_branch(call: Call, declined: bool) -> str:
    """Go to the branch that was asked about; what is to be said of it."""
    journal, world = call.glance()
    loop = call.choose(world)
    about, _, branch = (loop.asked or "").partition(":")
    caller = call.caller
    may_answer = loop.status == "waiting" and may_decide(loop, caller.by, caller.session)
    if about != "branch" or not may_answer:
        return ""
    require_trust(world, journal.path)
    from gsd_fsm.repository.repo import Repository

    repository = Repository.around(project_of(journal))
    if repository is None:
        return " There is no git work tree here any more."
    if declined:
        now = repository.branch() or "the present commit"
        return f" Continuing on {now}. Changes will be on base branch."
    before = repository.branch()
    repository.switch(branch, create=not repository.has_branch(branch))
    if is_planned(loop) and not plan_path(project_of(journal), loop).is_file():
        if before:
            repository.switch(before, create=False)
        raise Refused(
            f"branch {branch} does not have {loop.plan['file']}, which loop {loop.id} follows",
            f"bring it there, or stay here: gsd-fsm --loop {loop.id} answer n",
        )
    return f" Switched to {branch}."
