"""Show a loop in a git repository: the agent stops too early, lies, fails and finally succeeds.

The agent is a script. The hook is the file that real agents run, started as its own process.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import gsd_fsm
from gsd_fsm.config.caller import scratch_environment

HOOK = Path(gsd_fsm.__file__).with_name("gsd_fsm_hook.py")
SESSION = "demo-session"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
TEST = (
    "from calc import add\nassert add(2, 2) == 4, f'add(2, 2) is {add(2, 2)}'\nprint('1 passed')\n"
)


class Stage:
    """A temporary git repository, in which user, agent and hook act."""

    def __init__(self, folder: Path) -> None:
        self.env = scratch_environment(folder)
        # Inside the temporary home, where the search for a project ends.
        self.project = Path(self.env["HOME"], "project")
        self.project.mkdir(parents=True)
        settings = Path(self.env["HOME"], ".claude", "settings.json")
        settings.parent.mkdir()
        settings.write_text(json.dumps({"enabledPlugins": {"gsd-fsm@demo": True}}))
        self.agent = {**self.env, "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": SESSION}
        tty = sys.stdout.isatty()
        self.bold, self.dim, self.plain = ("\033[1m", "\033[2m", "\033[0m") if tty else ("", "", "")

    def explain(self, text: str) -> None:
        print(f"\n{self.bold}# {text}{self.plain}", flush=True)

    def run(self, *words: str, by_agent: bool = False, expected: int = 0) -> None:
        """Run a command as user or agent; end the demo if its exit code is not the expected one."""
        who = "agent" if by_agent else "you"
        print(f"{self.bold}{who}$ gsd-fsm {shlex.join(words)}{self.plain}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "gsd_fsm", *words],
            cwd=self.project, env=self.agent if by_agent else self.env, check=False,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode != expected:
            raise SystemExit(f"the demo expected exit code {expected}, got {done.returncode}")

    def git(self, *words: str) -> None:
        """Run git as the user."""
        print(f"{self.bold}you$ git {shlex.join(words)}{self.plain}", flush=True)
        identity = ("-c", "user.name=Demo", "-c", "user.email=demo@example.org")
        subprocess.run(["git", *identity, *words], cwd=self.project, env=self.env, check=True)

    def signal(self, event: str, **facts: object) -> dict[str, object]:
        """Return the answer of the hook to this signal of the client."""
        payload = {"hook_event_name": event, "session_id": SESSION, "cwd": str(self.project)}
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(HOOK), "demo"], input=json.dumps({**payload, **facts}),
            cwd=self.project, env=self.env, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return json.loads(done.stdout) if done.stdout else {}

    def stop(self, message: str, *, blocked: bool) -> None:
        """End the turn of the agent; end the demo if the hook does not decide as expected."""
        print(f"{self.bold}agent:{self.plain} {message}", flush=True)
        answer = self.signal("Stop", last_assistant_message=message)
        if (answer.get("decision") == "block") is not blocked:
            raise SystemExit(f"the demo expected a different decision than {answer}")
        print(f"{self.bold}hook: {'BLOCK' if blocked else 'ALLOW'}{self.plain}", flush=True)
        for line in str(answer.get("reason", "")).splitlines():
            print(f"      {self.dim}{line}{self.plain}", flush=True)


def play(stage: Stage) -> None:
    code, test = stage.project / "calc.py", stage.project / "test_calc.py"
    code.write_text(WRONG)
    test.write_text(TEST)
    stage.explain("A repository with a bug, and a test that shows it.")
    stage.git("init", "--quiet", "--initial-branch", "main")
    stage.git("add", "--all")
    stage.git("commit", "--quiet", "--message", "Add a calculator")
    stage.explain("You set a goal, and a command that proves it.")
    check = f'tests="{sys.executable}" -B test_calc.py'
    stage.run(
        "start",
        "goal",
        "add() returns the sum",
        "--check",
        check,
        "--mode",
        "yolo",
        "--max-iterations",
        "6",
    )
    stage.explain("You ask an agent. Its session now owns the loop.")
    stage.signal("UserPromptSubmit", prompt="Please make add() work.")
    print(f"{stage.bold}you:{stage.plain} Please make add() work.")
    stage.explain("It stops too early.")
    stage.stop("I had a look. It should be fine.", blocked=True)
    stage.explain("It lies about being done.")
    stage.stop("All tests pass.\n<loop-complete>all criteria met</loop-complete>", blocked=True)
    stage.explain("It tries and fails. gsd-fsm runs the check and records the evidence.")
    stage.run("check", by_agent=True, expected=7)
    stage.stop("I think the test is wrong.", blocked=True)
    stage.explain("Marking the criterion as met does not help.")
    stage.run("criterion", "tests", "met", by_agent=True, expected=4)
    stage.explain("Neither does weakening the test: it was frozen with the loop.")
    test.write_text("print('ok')\n")
    stage.run("check", by_agent=True, expected=7)
    stage.run("restore", "tests", by_agent=True)
    stage.explain("It fixes the code, and the check proves it.")
    code.write_text(RIGHT)
    stage.run("check", by_agent=True)
    stage.stop("Fixed.\n<loop-complete>tests pass</loop-complete>", blocked=True)
    stage.explain("`complete` compares the content of the repository with the evidence.")
    stage.run("complete", by_agent=True)
    stage.stop("Done.", blocked=False)
    stage.explain("What happened? Replay the journal; every line is verified.")
    stage.run("replay")
    stage.run("why")
    stage.run("proof")
    stage.run("fsck")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="gsd-fsm-demo-") as folder:
        play(Stage(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
