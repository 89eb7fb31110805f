"""Decide whether a loop may complete: the completion rule, and the evidence it rests on."""

from __future__ import annotations

from gsd_fsm.core.loop.protection import altered_checks
from gsd_fsm.core.loop.records import DONE
from gsd_fsm.core.loop.state import open_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, TypeVar

    from gsd_fsm.core.loop.records import Criterion, Task, Verdict
    from gsd_fsm.core.loop.state import Loop

    T = TypeVar("T")

# The words of a condition that is about a task, gap or criterion; the others are their own words.
_WORDS = {
    "criterion": "criterion not met: %s",
    "stale": "evidence is stale: %s",
    "altered": "protected file is altered: %s",
    "gap": "gap %s is open",
    "verdict": "no verdict on %s",
}
_KEYS = {"stale": "criterion"}
# The pauses from which a loop may complete: they limit effort, and finished work needs no more.
COMPLETABLE = (
    "iterations", "rounds", "stuck", "idle", "repeated", "budget", "minutes", "altered",
)  # fmt: skip
NO_TREE = "Evidence has no tree: changes of files after a check are not detected."


def missing(loop: Loop, tree: str | None = None) -> list[str]:
    """Return what the completion rule still requires, in words; nothing if the loop may complete."""
    return [words for _, words in conditions(loop, tree)]


def first_missing(loop: Loop, tree: str | None, most: int) -> tuple[list[str], int]:
    """Return the first `most` of what is missing, in words, and the number of all."""
    words: list[str] = []
    count = 0
    for kind, names in _open_conditions(loop, tree):
        found = list(names)
        count += len(found)
        words += [_words(loop, kind, name) for name in found[: most - len(words)]]
    return words, count


def is_complete(loop: Loop, tree: str | None = None) -> bool:
    """Return whether nothing is missing; stop at the first condition that does not hold."""
    return not any(True for _, names in _open_conditions(loop, tree) for _ in names)


def completes_from_pause(loop: Loop) -> bool:
    """Return whether the pause of this loop does not prevent its completion."""
    return loop.rules is not None and loop.status == "paused" and loop.pause_code in COMPLETABLE


def gives_exit_signal(loop: Loop) -> bool:
    """Return whether `complete` gives the exit signal of this loop."""
    return loop.kind == "goal" and loop.rules is not None


def is_met(loop: Loop, tree: str | None = None) -> bool:
    """Return whether nothing is missing but an exit signal that `complete` will give.

    While there is open work, or nothing but the signal shows that a goal is reached, the signal is
    a decision of its own.
    """
    for kind, names in _open_conditions(loop, tree):
        if kind == "exit" and _is_signal_implied(loop):
            continue
        if any(True for _ in names):
            return False
    return True


def _is_signal_implied(loop: Loop) -> bool:
    shows = bool(loop.criteria or needs_review(loop))
    return shows and gives_exit_signal(loop) and not open_work(loop)


def waits_for_altered(loop: Loop) -> bool:
    """Return whether nothing is missing but checks that pass and depend on an altered file."""
    names = altered_checks(loop)
    if not names:
        return False
    return all(
        _is_held_back(loop, kind, name, names)
        for kind, found in _open_conditions(loop, latest_tree(loop))
        for name in found
    )


def is_only_altered(criterion: Criterion, names: set[str]) -> bool:
    """Return whether a check passed and does not count because of these altered checks."""
    proof = criterion.evidence or {}
    passed = bool(proof.get("altered")) and not proof["exit_code"]
    return passed and not names.isdisjoint((criterion.name, ""))


def _is_held_back(loop: Loop, kind: str, name: str, altered: set[str]) -> bool:
    """Return whether only an altered file keeps a condition from holding."""
    if kind == "criterion":
        return is_only_altered(loop.criteria[name], altered)
    if kind == "task":
        return _is_unproven(loop.tasks[name], altered)
    return kind in ("altered", "verified") or (kind == "exit" and _is_signal_implied(loop))


def _is_unproven(task: Task, altered: set[str]) -> bool:
    """Return whether only an altered file keeps a task from being proven."""
    if task.status == "running":
        return task.phase is not None and "tdd" in altered
    own = any(name.partition("#")[0] == task.id for name in altered)
    return task.status == "reported" and task.verdict == "complete" and (own or "" in altered)


def awaits_complete(loop: Loop) -> bool:
    """Return whether `gsd-fsm complete` is the only command that is left to run."""
    can_complete = loop.is_active or completes_from_pause(loop)
    return can_complete and is_met(loop, latest_tree(loop))


def conditions(loop: Loop, tree: str | None = None) -> list[tuple[str, str]]:
    """Return the conditions of completion that do not hold: the key of each, and its words."""
    return [
        (_key(kind, name), _words(loop, kind, name))
        for kind, names in _open_conditions(loop, tree)
        for name in names
    ]


def is_missing(loop: Loop, key: str) -> bool:
    """Return whether `conditions` has this key, without computing the others."""
    _, _, name = key.partition(":")
    found = _open_conditions(loop, latest_tree(loop), name)
    return any(_key(kind, each) == key for kind, names in found for each in names)


def _open_conditions(
    loop: Loop, tree: str | None, only: str | None = None
) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the conditions that do not hold: what kind they are of, and the names they are about.

    `only`: look at no other criterion, task or gap.
    """
    criteria = _named(loop.criteria, only)
    yield "criterion", (name for name, criterion in criteria.items() if not criterion.met)
    yield "stale", (name for name, it in criteria.items() if _is_stale(it, tree))
    yield "altered", (file.path for file in loop.protection.altered if only in (None, file.path))
    all_count = loop.kind == "execute"
    if all_count and not loop.tasks:
        yield "tasks", ("no task was recorded",)
    work_counts = loop.stage is not None and loop.kind == "goal" and loop.rules is not None
    yield (
        "task",
        (
            name
            for name, task in _named(loop.tasks, only).items()
            if task.status not in DONE
            and (all_count or task.mirrored or (work_counts and task.is_work))
        ),
    )
    if loop.kind == "execute":
        most = loop.plan.task_count
        if most is not None and len(loop.tasks) < most:
            words = "only %d of the %d tasks of the plan are recorded" % (len(loop.tasks), most)
            yield "tasks", (words,)
    elif loop.kind == "verify":
        yield "gap", (name for name, gap in _named(loop.gaps, only).items() if gap.is_open)
        if not loop.verified:
            yield "verified", ("no verification has passed since the last gap was closed",)
        else:
            yield "verdict", (it.id for it in open_verdicts(loop))
    else:
        yield from _open_goal_conditions(loop)


def open_verdicts(loop: Loop) -> list[Verdict]:
    """Return what the last round left to a human or a reviewer, and nobody has approved."""
    return [verdict for verdict in loop.verdicts.values() if not verdict.passed]


def _named(held: dict[str, T], only: str | None) -> dict[str, T]:
    return held if only is None else {only: held[only]} if only in held else {}


def _open_goal_conditions(loop: Loop) -> Iterator[tuple[str, Iterable[str]]]:
    if loop.is_unclear:
        yield "clarity", ("the goal is not clear",)
    if not loop.exit_signal:
        yield "exit", ("no exit signal",)
    if not _is_reviewed(loop):
        yield "review", ("the thorough review has not passed",)
    elif loop.review_outdated:
        yield "rework", ("work was done after the thorough review",)


def _key(kind: str, name: str) -> str:
    if kind != "task" and kind not in _WORDS:
        return kind
    return "%s:%s" % (_KEYS.get(kind, kind), name)


def _words(loop: Loop, kind: str, name: str) -> str:
    if kind == "task":
        return "task %s is %s" % (name, loop.tasks[name].status)
    return _WORDS[kind] % name if kind in _WORDS else name


def _is_reviewed(loop: Loop) -> bool:
    review = loop.reviews.get("thorough")
    return not needs_review(loop) or bool(review and review.passed)


def needs_review(loop: Loop) -> bool:
    """Return whether a goal is complete only after a thorough review."""
    return bool(loop.review_needed or loop.stage or loop.spec_score is not None)


def stale(loop: Loop, tree: str | None) -> list[str]:
    """Return the met criteria whose evidence was taken from other content than this tree."""
    return [name for name in loop.criteria if _is_stale(loop.criteria[name], tree)]


def _is_stale(criterion: Criterion, tree: str | None) -> bool:
    return criterion.met and criterion.tree not in (None, tree)


def has_tree(loop: Loop) -> bool:
    """Return whether completing needs the content of the work tree, which only the CLI can take."""
    return any(criterion.tree for criterion in loop.criteria.values())


def lacks_tree(loop: Loop) -> bool:
    """Return whether evidence of this loop is not bound to content: it began without git."""
    has_checks = loop.kind == "verify" or any(c.check for c in loop.criteria.values())
    return loop.rules is not None and not loop.rules.tree and has_checks


def needs_clean_room(loop: Loop) -> bool:
    """Return whether the checks must pass in a clean room before the loop completes."""
    return loop.rules is not None and loop.rules.clean


def completes_by_command(loop: Loop) -> bool:
    """Return whether completing needs git, the plan or documents, which only the CLI has."""
    if needs_clean_room(loop):
        return True
    needs_plan = loop.is_planned and (loop.kind == "execute" or loop.rules is not None)
    return has_tree(loop) or needs_plan or bool(loop.verdicts)


def latest_tree(loop: Loop) -> str | None:
    """Return the content that the latest evidence was taken from.

    Only `complete` takes the content again; until then the latest evidence counts as fresh.
    """
    if not loop.proven_criteria:
        return None
    return loop.criteria[next(reversed(loop.proven_criteria))].tree


def proof_counts(loop: Loop) -> tuple[dict[str, int], dict[str, int]]:
    """Return how much of each kind was proven by checks, and how much was claimed."""
    met = [criterion for criterion in loop.criteria.values() if criterion.met]
    proven = [it for it in met if it.check and it.evidence and not it.evidence["exit_code"]]
    review = loop.reviews.get("thorough")
    tasks = [task for task in loop.tasks.values() if task.status == "complete" and task.is_work]
    by_checks = [task for task in tasks if task.proof == "proven"]
    is_verified = loop.kind == "verify" and loop.verified
    verdicts = [verdict for verdict in loop.verdicts.values() if verdict.passed]
    by_agents = [verdict for verdict in verdicts if verdict.agent]
    checked = {
        "criterion": len(proven),
        "task": len(by_checks),
        "verification": int(is_verified and loop.round_checks > 0),
    }
    claimed = {
        "criterion": len(met) - len(proven),
        "task": len(tasks) - len(by_checks),
        "review": int(bool(review and review.passed)),
        "verification": int(is_verified and not loop.round_checks),
        "verdict": len(verdicts) - len(by_agents),
        "verdict by an agent": len(by_agents),
        "exit signal": int(loop.exit_signal and not loop.criteria),
    }
    return _without_zeros(checked), _without_zeros(claimed)


def _without_zeros(counts: dict[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if count}
