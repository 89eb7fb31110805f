"""Ids that a shell can complete: live loops, and the tasks, gaps and criteria of the selected loop.

Completion is silent: an error gives no candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gsd_fsm.core.command_line import PROGRAM

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from gsd_fsm.core.loop.state import Loop
    from gsd_fsm.engine.context import Context

# id, description
Candidate = tuple[str, str | None]
Completer = Callable[["click.Context", "click.Parameter", str], "list[CompletionItem]"]
COMPLETE_VARIABLE = "_GSD_FSM_COMPLETE"  # set by the script of a shell that asks for candidates
_LONGEST = 60


def complete_line(cli: click.Command, instruction: str) -> int:
    """Print the candidates for the command line in the environment; nothing on an error."""
    from click.shell_completion import add_completion_class, shell_complete

    from gsd_fsm.cli.help.shells import SHELLS

    for name, shell in SHELLS.items():
        add_completion_class(shell, name)
    try:
        return shell_complete(cli, {}, PROGRAM, COMPLETE_VARIABLE, instruction)
    except Exception:  # noqa: BLE001 - the shell would show it in the middle of a command line
        return 1


def _completer(find: Callable[[Context], Iterable[Candidate]]) -> Completer:
    def complete(
        context: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from gsd_fsm.core.text.sanitize import one_line
        from gsd_fsm.engine.context import Context

        outer: dict[str, Any] = context.find_root().params
        loop_id = context.params.get("loop_id") or outer.get("loop_id")
        try:
            found = list(find(Context(outer.get("project") or ".", loop_id)))
        except Exception:  # noqa: BLE001 - an error would be shown in the middle of a command line
            return []
        return [
            CompletionItem(name, help=one_line(words, _LONGEST) or None)
            for name, words in found
            if name.startswith(incomplete)
        ]

    return complete


def _of_loop(find: Callable[[Loop], Iterable[Candidate]]) -> Completer:
    return _completer(lambda context: find(context.loop(context.read())))


def _tasks(loop: Loop) -> Iterable[Candidate]:
    from gsd_fsm.core.loop.state import open_tasks

    return ((name, loop.tasks[name].title) for name in open_tasks(loop))


def _gaps(loop: Loop) -> Iterable[Candidate]:
    return ((name, f"{gap.status}: {gap.description}") for name, gap in loop.gaps.items())


def _open_gaps(loop: Loop) -> Iterable[Candidate]:
    return ((name, gap.description) for name, gap in loop.gaps.items() if gap.is_open)


def _criteria(loop: Loop) -> Iterable[Candidate]:
    """Return the numbers of the criteria without a check, since their texts contain spaces."""
    numbered = enumerate(loop.criteria.items(), 1)
    return ((str(number), name) for number, (name, it) in numbered if not it.check)


def _checks(loop: Loop) -> Iterable[Candidate]:
    return ((name, it.check) for name, it in loop.criteria.items() if it.check)


def _altered(loop: Loop) -> Iterable[Candidate]:
    files = loop.protection.altered
    return ((name, it.path) for it in files for name in it.checks or (it.path,))


def _live_loops(context: Context) -> Iterable[Candidate]:
    loops = context.read().live()
    return ((loop.id, f"{loop.kind}, {loop.status}: {loop.goal or ''}") for loop in loops)


def _questions(loop: Loop) -> Iterable[Candidate]:
    from gsd_fsm.core.loop.events.sessions import open_questions

    return ((it.id, it.question) for it in open_questions(loop))


def _checkpoints(context: Context) -> Iterable[Candidate]:
    from gsd_fsm.engine.planned.rollback import list_checkpoints

    return ((it.name, it.subject) for it in list_checkpoints(context, None)[1])


live_loops = _completer(_live_loops)
tasks = _of_loop(_tasks)
tasks_and_gaps = _of_loop(lambda loop: [*_tasks(loop), *_open_gaps(loop)])
gaps = _of_loop(_gaps)
criteria = _of_loop(_criteria)
checks = _of_loop(_checks)
altered = _of_loop(_altered)
questions = _of_loop(_questions)
checkpoints = _completer(_checkpoints)
