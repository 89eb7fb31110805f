"""Show the state of the project, and the three most useful commands: gsd-fsm without a command."""

from __future__ import annotations

import os
from collections.abc import Iterator

from gsd_fsm.cli.display.loop import HOOK_DISABLED, loop_box, not_trusted
from gsd_fsm.cli.display.page import (
    Command,
    Fields,
    Line,
    Moment,
    Part,
    Piece,
    Styled,
    Table,
    Words,
    status_word,
)
from gsd_fsm.cli.display.show import show
from gsd_fsm.cli.output import flat, without_owner
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Corrupt, GsdError, NotFound
from gsd_fsm.core.loop.completion import awaits_complete
from gsd_fsm.core.loop.fold import Loops
from gsd_fsm.core.loop.state import Loop
from gsd_fsm.core.text.next_step import next_step
from gsd_fsm.core.text.questions import plural
from gsd_fsm.core.text.sanitize import one_line
from gsd_fsm.engine.context import Context
from gsd_fsm.engine.status import failed_stop, is_hook_disabled, is_trusted
from gsd_fsm.install.presence import missing_hook, relies_on_settings

# What a command does, and the command.
Step = tuple[str, str]

_ABOUT = "Durable loops for coding agents: keep working until the work is proven done."
# Loops, and characters of a goal, that fit on a screen.
_SHOWN, _GOAL = 3, 200


def overview(project: str | None) -> None:
    """Print the overview; a journal that cannot be read is reported, not raised."""
    last = Line(["All commands: ", Command(command_line("--help"))])
    show([*_page(Context(project or ".")), last])


def _page(context: Context) -> Iterator[Part]:
    problem, fix = _hook_problem(context)
    loops = None
    try:
        loops = context.read(trusted=False)
    except NotFound:
        pass
    except GsdError as error:
        yield Line([Styled("The journal cannot be used", "bad"), f": {flat(error.message)}"])
        yield _commands(_of_damage(error))
        return
    if loops is None or not loops.seq:
        yield Line(_ABOUT)
        yield Line(
            f"There is no loop in this directory yet{f', and {problem}' if problem else ''}."
        )
        yield _commands(_first_steps(fix))
        return
    if not problem and any(map(relies_on_settings, loops.live())):
        start, project = os.fspath(context.directory), os.path.dirname(context.gsd)
        problem, command = missing_hook(project, start)
        fix = command_line(command)
    if problem:
        words = Styled(f"{problem[:1].upper()}{problem[1:]}.", "asking")
        yield Line([words, " Run: ", Command(fix)])
    if is_hook_disabled(context):
        yield Line(Styled(f"The hook is {HOOK_DISABLED}.", "asking"))
    yield from _loops(context, loops, trusted=is_trusted(context))


def _loops(context: Context, loops: Loops, *, trusted: bool) -> Iterator[Part]:
    live = sorted(loops.live(), key=lambda loop: -loop.last_seq)
    last = loops.last_ended()
    if not live:
        yield Line("There is no live loop in this project.")
    yield from (loop_box(loop, failed_stop(context, loop)) for loop in live[:_SHOWN])
    if len(live) > _SHOWN:
        more = plural(len(live) - _SHOWN, "more live loop")
        yield Line([f"{more}: ", Command(command_line("status"))])
    if last is not None:
        yield Fields([("last ended", [_ended(last)])])
    if not trusted:
        yield Line(not_trusted())
        yield _commands(_of_untrusted())
        return
    if len(live) == 1 and live[0].owner is None and live[0].is_active:
        words, command = without_owner(live[0])
        yield Line([f"{words} ", Command(command)])
    yield _commands(_useful(live, last))


def _hook_problem(context: Context) -> tuple[str, str]:
    """Return why no hook is loaded here, and the command that installs it; else ""."""
    from gsd_fsm.install.installer import hook_problem

    try:
        return hook_problem(os.fspath(context.directory))
    except (GsdError, OSError):
        return "", ""  # `doctor` reports why the settings cannot be read


def _ended(loop: Loop) -> list[Piece]:
    goal = one_line(loop.goal or loop.plan.title or "", _GOAL)
    words: list[Piece] = [f"{loop.id} · {loop.kind} · ", status_word(loop.status)]
    return [*words, " ", Moment(loop.last_event), f": {goal}" if goal else ""]


# the three most useful commands


def _commands(rows: list[Step]) -> Table:
    """Return a table of the first three."""
    shown: list[list[Words]] = [[words, Command(command)] for words, command in rows[:3]]
    return Table(("to", "run"), shown)


def _first_steps(fix: str) -> list[Step]:
    """Return how to begin; `fix` installs the hook, "" if it is installed."""
    steps = [("install the hook", fix)] if fix else []
    steps += [
        ("loop until CMD passes", command_line("start goal GOAL --check tests=CMD")),
        ("see all options of a loop", command_line("start --help")),
        ("list the live loops of all projects", command_line("ps")),
    ]
    return steps


def _of_damage(error: GsdError) -> list[Step]:
    if not isinstance(error, Corrupt):
        return [("see the cause and its fix", command_line("doctor"))]
    return [
        ("examine every line", command_line("fsck")),
        ("save the file, keep the valid lines", command_line("fsck --repair")),
        ("read the events before the damage", command_line("replay")),
    ]


def _of_untrusted() -> list[Step]:
    return [
        ("read the journal", command_line("replay")),
        ("see its loops", command_line("status")),
        ("see its commands, then trust it", command_line("trust")),
    ]


def _useful(live: list[Loop], last: Loop | None) -> list[Step]:
    """Return the next steps of loops that need the user, then general commands."""
    urgent = [row for loop in live for row in _urgent(loop)]
    if len(live) > 1:
        return [*urgent, *_of_live("ID")]
    if live:
        is_new = live[0].is_active and not live[0].iteration
        return [*urgent, *_of_live(live[0].id, is_new=is_new)]
    if last is None:
        return _first_steps("")
    return [
        ("see what happened", command_line("replay", last.id)),
        ("list all past loops", command_line("history")),
        ("start another loop", command_line("start --help")),
    ]


def _urgent(loop: Loop) -> Iterator[Step]:
    """Yield the next step of a loop that does not continue without the user."""
    words = ""
    if awaits_complete(loop):
        words = "complete the loop"
    elif loop.status == "paused":
        words = "continue"
    elif loop.status == "waiting" and loop.wait_for == "human":
        words = "answer the question"
    if words:
        yield words, next_step(loop, brief=True)[1]


def _of_live(loop_id: str, *, is_new: bool = False) -> list[Step]:
    explained = ("explain its last stop", command_line("why", loop_id))
    return [
        ("see all details", command_line("status", loop_id)),
        ("see what happened", command_line("replay", loop_id)) if is_new else explained,
        ("pause it", command_line("pause", loop_id)),
    ]
