"""Lives of loops as agents with habits lead them, and a ledger that counts their limits."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from gsd_fsm.core.clock import now_ms
from gsd_fsm.core.errors import Refused
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.records import Limits
from gsd_fsm.core.project import state_directory
from gsd_fsm.gsd_fsm_hook import reply
from tests.support.events import append, draft, new_journal
from tests.support.hook_project import blocks, signal_of

CLIENT_CAP = 8
MOST_STOPS = 120
DONE = "All done.\n<loop-complete>done</loop-complete>"
TOOL = '{"message":{"content":[{"type":"tool_use"}]}}\n'


class Ledger:
    """Counts what the guards should count, and names the limit that a block exceeds."""

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
        """Return what a stuck loop does not change."""
        still_open = sorted(name for name, is_open in self.gaps.items() if is_open)
        return dict(self.met), still_open, self.tasks_done

    def note(self, event: dict[str, Any]) -> str:
        """Count this event; return the limit that it exceeds, or ""."""
        kind, data = event["type"], event["data"]
        if kind == "iteration":
            return self._block()
        prompt = data.get("action") == "prompt"
        if event["by"] in ("agent", "human") or prompt:
            self.idle = 0
        helps_itself = event["by"] == "agent" and (kind == "answer" or "add" in data)
        if helps_itself and not self.spoken_to:
            return "nobody allowed it"
        self.spoken_to = prompt or (self.spoken_to and kind not in ("wait", "pause"))
        if kind == "resume":
            self.stuck = self.idle = self.repeats = 0
            for name, more in data.get("add", {}).items():
                if self.limits[name] or name == "max_retries":
                    self.limits[name] += more
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

    def _block(self) -> str:
        self.blocks += 1
        self.spoken_to = False
        self.idle += 1
        progress = self._progress()
        self.stuck = self.stuck + 1 if progress == self.seen else 0
        self.seen = progress
        counts = {"max_iterations": self.blocks, "stuck_limit": self.stuck, "idle_limit": self.idle}
        for name, count in counts.items():
            if 0 < self.limits[name] < count:
                return name
        if self.cap and self.idle > self.cap:
            return "the client's cap"
        if self.kind == "verify" and 0 < self.limits["max_rounds"] <= self.rounds:
            return "max_rounds"
        if 0 < (self.limits["budget_usd"] or 0) <= self.spent:
            return "budget_usd"
        return "repeated" if self.repeats >= 3 else ""


class Said(NamedTuple):
    """One answer of the hook, and how long the journal was before and after it."""

    before: int
    after: int
    event: str
    first: bool  # of the copies that were asked
    answer: dict[str, Any]


class Stage:
    """A registered project that is emptied for every life."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.gsd = root / ".gsd"
        new_journal(self.gsd)
        self.file = self.gsd / "journal.jsonl"
        self.transcript = root / "transcript.jsonl"
        self.head = root / ".git" / "HEAD"
        self.head.parent.mkdir()
        self._empty = self.file.read_bytes()

    def clear(self) -> None:
        for path in self.gsd.iterdir():
            if path.name not in ("journal.jsonl", "journal.lock"):
                path.unlink()
        # Sequence numbers begin anew, which no journal that lives does.
        shutil.rmtree(Path(state_directory()) / "repeats", ignore_errors=True)
        self.file.write_bytes(self._empty)
        self.transcript.write_bytes(b"")
        self.head.write_text("0" * 40)


class Life:
    """One loop from its start until nobody continues it."""

    def __init__(self, stage: Stage, seed: int) -> None:
        stage.clear()
        self.r = Random(seed)
        self.stage = stage
        self.said: list[Said] = []
        self.signs: list[int] = []  # where the journal ended when work was done that is in no event
        self.stops = 0
        self.session = "s-1"
        self.journal = Journal(str(stage.gsd))
        self.copies = self.r.choice((["settings"], ["settings", "plugin"]))
        self.shuffled = self.r.random() < 0.5
        self.client = self.r.choice(({}, {"session_crons": []}))
        self._start()
        self.habits = self.r.sample(HABITS, self.r.randrange(1, 4))
        self.visits = self.r.randrange(4)

    def _start(self) -> None:
        r = self.r
        limits: dict[str, Any] = {
            "max_iterations": r.choice((1, 2, 4, 8, 16)), "max_retries": r.randrange(3),
            "max_rounds": r.randrange(4), "stuck_limit": r.choice((0, 0, 1, 3, 5)),
            "idle_limit": r.randrange(4),
        }  # fmt: skip
        if r.random() < 0.2:
            limits["budget_usd"] = r.choice((0.5, 2))
        if r.random() < 0.1:
            limits["max_minutes"] = r.choice((1, 30))
        data = {
            "kind": r.choice(("execute", "verify", "goal")),
            "mode": r.choice(("yolo", "yolo", "interactive")),
            "limits": limits,
            "tasks": [{"id": "T1", "wave": 1}, {"id": "T2", "wave": 2}],
            "criteria": [{"name": "plain"}, {"name": "checked", "check": "make"}][: r.randrange(3)],
        }
        owner = {"session": self.session} if r.random() < 0.8 else {}
        since = now_ms() - r.choice((0, 0, 600_000))
        journal = Journal(str(self.stage.gsd), now=lambda: since)
        append(journal, draft("start", "lp-1", "human", data, **owner))

    def tell(self, kind: str, by: str = "agent", **data: Any) -> None:
        """Append an event as the command line does, unless it is refused."""
        event = draft(kind, "lp-1", by, data, session=self.session)
        with contextlib.suppress(Refused):
            append(self.journal, event)

    def show_work(self, path: Path, text: str) -> None:
        """Do work that only the client's transcript or the repository shows."""
        with path.open("a" if path == self.stage.transcript else "w") as file:
            file.write(text)
        self.signs.append(self.size)

    @property
    def size(self) -> int:
        return self.stage.file.stat().st_size

    def signal(self, event: str, **more: Any) -> dict[str, Any]:
        """Send a signal to every copy of the hook; return the answer of the first."""
        more = {"transcript_path": str(self.stage.transcript), **self.client, **more}
        text = signal_of(self.stage.root, event, self.session, **more)
        copies = self.r.sample(self.copies, len(self.copies)) if self.shuffled else self.copies
        for copy in copies:
            before = self.size
            answer = reply(text, copy)
            self.said.append(Said(before, self.size, event, copy == copies[0], answer))
        return self.said[-len(copies)].answer

    def stop(self) -> bool:
        """Stop once; return whether the stop is blocked."""
        r = self.r
        self.stops += 1
        more: dict[str, Any] = {"last_assistant_message": r.choice(("Done.", "", DONE))}
        if r.random() < 0.1:
            kind = r.choice(("shell", "subagent"))
            more["background_tasks"] = [{"type": kind, "id": f"b{r.randrange(3)}"}]
        return blocks(self.signal("Stop", **more))

    def live(self) -> None:
        self.signal("UserPromptSubmit", prompt="start")
        while self.turn() and self.stops < MOST_STOPS and self.visits:
            self.visits -= 1
            self.visit()

    def turn(self) -> bool:
        """Act and stop until a stop is allowed; return whether the user comes back."""
        r = self.r
        while self.stops < MOST_STOPS:
            r.choice(self.habits)(self)
            chance = r.random()
            if chance < 0.03:
                self.signal("StopFailure", error=r.choice(("rate_limit", "billing_error")))
                return r.random() < 0.8
            if chance < 0.06:
                self.crash()
            if not self.stop():
                return r.random() < 0.8
        return False

    def crash(self) -> None:
        """Lose the session without a signal; resume it or let another one take over."""
        if self.r.random() < 0.5:
            self.signal("SessionStart", source="resume")
            return
        self.session = f"s-{self.stops + 2}"
        self.signal("SessionStart", source="startup")
        assert not self.stop()  # of a session that owns nothing
        self.tell("resume", "human")

    def visit(self) -> None:
        """Let the user send a prompt, then answer, resume, raise limits or change the mode."""
        r = self.r
        self.signal("UserPromptSubmit", prompt=r.choice(("go on", "why?")))
        what = r.randrange(5)
        if what == 0:
            self.tell("answer", "human", text="yes")
        elif what == 1:
            self.tell("resume", "human")
        elif what == 2:
            more = {"max_iterations": 2, "max_retries": 1, "max_rounds": 1}
            self.tell("resume", r.choice(("human", "agent")), add=more)
        elif what == 3:
            self.tell("mode", "human", mode="yolo")


def failer(life: Life) -> None:
    task = life.r.choice(({"task": "T1"}, {"task": "T2"}, {}))
    error = {"error": "it broke", "class": life.r.choice(("logic", "transient"))}
    life.tell("failure", **error, **task)


def liar(life: Life) -> None:
    """Says it is done, over and over, and helps itself to more room."""
    life.tell("complete")
    life.tell("exit")
    life.tell("criterion", criterion="checked", met=True)
    life.tell("resume", add={"max_iterations": 3})
    life.tell("answer", text="yes")


def seesaw(life: Life) -> None:
    """Makes what looks like progress and takes it back."""
    action = life.r.choice(("found", "closed", "reopened"))
    life.tell("gap", gap=f"G{life.r.randrange(2)}", action=action)


def checker(life: Life) -> None:
    code = life.r.randrange(2)
    evidence = {"command": "make", "exit_code": code, "likeness": str(life.r.randrange(3))}
    if life.r.random() < 0.5:
        evidence["tree"] = "t"
    life.tell("criterion", criterion="checked", met=not code, evidence=evidence)
    life.tell("verified", passed=life.r.random() < 0.5)


def worker(life: Life) -> None:
    task = life.r.choice(("T1", "T2"))
    life.tell("task", task=task, status="running")
    if life.r.random() < 0.3:
        life.tell("task", task=task, status=life.r.choice(("complete", "checkpoint")))
    life.tell("criterion", criterion="plain", met=life.r.random() < 0.3)


HABITS: tuple[Callable[[Life], None], ...] = (
    lambda life: None,  # stops at once
    lambda life: life.tell("note", text="nearly done"),
    failer, liar, seesaw, checker, worker,
    lambda life: life.show_work(life.stage.transcript, TOOL),
    lambda life: life.show_work(life.stage.head, f"{life.r.getrandbits(160):040x}"),
    lambda life: life.tell("spend", usd=life.r.random()),
)  # fmt: skip


def events_of(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stage.file.read_bytes().splitlines()]
