"""What is to be done in each stage of a goal, and after each of its waves."""

from __future__ import annotations

from gsd_fsm.core.goal import is_unclear
from gsd_fsm.core.loop import current_wave, open_work, unmet
from gsd_fsm.core.proof import needs_review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop import Loop

    Advice = tuple[str, str]

_SCORE = "score --outcome N --scope N --constraints N --success N --done N"


def stage_step(loop: Loop, run: str) -> Advice | None:
    """What the stage asks for before the work itself goes on; None when the work is due."""
    if is_unclear(loop):
        words = (
            "The goal is not clear enough to begin. Clarify it with the user, then score it again."
        )
        return words, run + _SCORE
    if loop.stage == "intent":
        if loop.spec_score is None:
            return "Score the goal, 0 to 2 for each of the five.", run + _SCORE
        return "The goal is understood (spec %d/10). Give it its shape." % loop.spec_score, (
            run + "stage shape"
        )
    if loop.stage == "shape":
        words = (
            "Write down criteria, must-nots and verification in SHAPE.md, or read what is there."
        )
        return words, run + "stage decompose --shape-file SHAPE.md"
    if loop.stage == "decompose":
        words = "Break the work into tasks ('task ID pending --title TEXT --blocked-by ID'); then begin."
        return words, run + "stage executing"
    return _wave_review(loop, run) or _to_review(loop, run)


def _wave_review(loop: Loop, run: str) -> Advice | None:
    """A light review belongs between two waves, where the goal is reviewed at all."""
    wave = current_wave(loop)
    if not needs_review(loop) or not wave or not open_work(loop):
        return None
    last = max(
        (t["wave"] for t in loop.tasks.values() if t["wave"] and t["wave"] < wave), default=0
    )
    begun = [t for t in loop.tasks.values() if t["wave"] == wave and t["status"] != "pending"]
    if not last or begun or "wave_%d" % last in loop.reviews:
        return None
    words = (
        "Wave %d is done. Review it lightly (idiom, cleanliness, fit to the goal); it only informs."
    )
    return words % last, run + "review light --wave %d --score N --issues N --blockers N" % last


def _to_review(loop: Loop, run: str) -> Advice | None:
    if loop.stage == "executing" and not open_work(loop) and not unmet(loop):
        return "Every task is done and every criterion met. Go on to the review.", (
            run + "stage review"
        )
    return None
