"""An independent account of a life: what every limit still allowed at each block, from the events."""

from __future__ import annotations

from typing import Any

from gsd_fsm.core.loop.records import Limits

CLIENT_CAP = 8
_ADDED = ("max_iterations", "max_retries", "max_rounds")


class Ledger:
    """Counts what the guards should count, and says which limit a block overstepped."""

    def __init__(self, start: dict[str, Any], cap: int) -> None:
        given = Limits(start["limits"])
        self.limits: dict[str, Any] = {name: getattr(given, name) for name in vars(given)}
        self.kind = start["kind"]
        self.cap = cap
        self.blocks = self.rounds = self.idle = self.stuck = self.repeats = 0
        self.spent = 0.0
        self.spoken_to = True  # the human has started it
        self.tasks_done = 0
        self.met: dict[str, Any] = {spec["name"]: (False, None) for spec in start["criteria"]}
        self.gaps: dict[str, bool] = {}
        self.seen = self._progress()

    def _progress(self) -> tuple[Any, ...]:
        """What a stuck loop does not change."""
        still_open = sorted(name for name, is_open in self.gaps.items() if is_open)
        return dict(self.met), still_open, self.tasks_done

    def sign(self) -> None:
        """Somebody did something."""
        self.idle = 0

    def note(self, event: dict[str, Any]) -> str:
        """Take this event in; the limit that it oversteps, "" for none."""
        kind, data = event["type"], event["data"]
        if kind == "iteration":
            return self._block()
        prompt = data.get("action") == "prompt"
        if event["by"] in ("agent", "human") or prompt:
            self.sign()
        helps_itself = event["by"] == "agent" and (kind == "answer" or "add" in data)
        if helps_itself and not self.spoken_to:
            return "nobody allowed it"
        self.spoken_to = prompt or (self.spoken_to and kind not in ("wait", "pause"))
        if kind == "resume":
            self._resume(data.get("add", {}))
        elif kind == "verified":
            self.rounds += 1
        elif kind == "spend":
            self.spent += data["usd"]
        elif kind == "gap":
            self.gaps[data["gap"]] = data["action"] != "closed"
        elif kind == "criterion":
            old = self.met[data["criterion"]][1]
            proof = data.get("evidence")
            shown = (proof["exit_code"], proof["likeness"]) if proof else old
            self.met[data["criterion"]] = (data["met"], shown)
        elif kind == "task" and data["status"] == "complete":
            self.tasks_done += 1
            self.repeats = 0
        elif kind == "failure" and "task" not in data:
            self.repeats += 1  # there is one error only in these lives
        return ""

    def _resume(self, add: dict[str, int]) -> None:
        self.stuck = self.idle = self.repeats = 0
        for name in _ADDED:
            if self.limits[name] or name == "max_retries":
                self.limits[name] += add.get(name, 0)

    def _block(self) -> str:
        self.blocks += 1
        self.spoken_to = False
        self.idle += 1
        progress = self._progress()
        self.stuck = self.stuck + 1 if progress == self.seen else 0
        self.seen = progress
        counted = {
            "max_iterations": self.blocks,
            "stuck_limit": self.stuck,
            "idle_limit": self.idle,
        }
        for name, count in counted.items():
            if 0 < self.limits[name] < count:
                return name
        if self.cap and self.idle > self.cap:
            return "the client's cap"
        if self.kind == "verify" and 0 < self.limits["max_rounds"] <= self.rounds:
            return "max_rounds"
        if 0 < (self.limits["budget_usd"] or 0) <= self.spent:
            return "budget_usd"
        return "repeated" if self.repeats >= 3 else ""
