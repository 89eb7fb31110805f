"""What is to be done in each stage of a goal, and after each of its waves."""

from __future__ import annotations

from gsd_fsm.core.loop.state import open_work, unmet
from gsd_fsm.core.loop.waves import current_wave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gsd_fsm.core.loop.state import Loop

    Advice = tuple[str, str]

_SCORE = "score --outcome N --scope N --constraints N --success N --done N"


def stage_step(loop: Loop, run: str) -> Advice | None:
    """What the stage asks for before the work itself goes on; None when the work is due."""
    if loop.is_unclear:
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
    """A light review belongs after each wave, where the goal is reviewed at all."""
    tasks = [task for task in loop.tasks.values() if task.condition is None]
    reviewed = loop.stage == "executing" or (loop.stage is None and loop.spec_score is not None)
    if not reviewed or not tasks:
        return None
    wave = current_wave(loop) or 1
    last = wave
    if any(not task.is_done for task in tasks):
        last = max((t.wave for t in tasks if t.wave and t.wave < wave), default=0)
        if any(t.wave == wave and t.status != "pending" for t in tasks):
            return None
    if not last or "wave_%d" % last in loop.reviews:
        return None
    words = (
        "Wave %d is done. Review it lightly (idiom, cleanliness, fit to the goal); it only informs."
    )
    return words % last, run + "review light --wave %d --score N --issues N --blockers N" % last


def _to_review(loop: Loop, run: str) -> Advice | None:
    if open_work(loop) or unmet(loop):
        return None
    if loop.stage == "executing":
        words = (
            "Every task is done and every criterion met. Go on to the review."
            if loop.tasks or loop.criteria
            else "Do the work of the goal; no task and no criterion of it is recorded. Then review it."
        )
        return words, run + "stage review"
    thorough = loop.reviews.get("thorough")
    if loop.stage == "review" and (thorough is None or not thorough.passed):
        return "Review everything thoroughly, and against every must-not.", run + "review begun"
    return None
