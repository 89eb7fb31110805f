"""A headless session of the client: prompts go in, a stream of JSON comes out."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
PATIENCE = 60  # seconds without a message after which a session fails
HEADLESS = (
    "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
    "--include-hook-events",
)  # fmt: skip
# What the client may do without asking; a headless session denies the rest.
ANYTHING = ("--dangerously-skip-permissions",)
EDITING = ("--permission-mode", "acceptEdits")


class Chat:
    """A process of the client."""

    def __init__(
        self, command: list[str], project: Path, env: dict[str, str], before: Sequence[str],
        mode: Sequence[str],
    ) -> None:  # fmt: skip
        self.said: list[Json] = []
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            [*before, command[0], *HEADLESS, *mode, *command[1:]],
            cwd=project,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout:
            for line in self.process.stdout:
                try:
                    message = dict(json.loads(line))
                except ValueError:
                    message = {"type": "stderr", "text": line}
                with self._changed:
                    self.said.append(message)
                    self._changed.notify_all()

    def ask(self, prompt: str) -> Json:
        """Send a prompt; return the result of its turn."""
        before = len(self.results)
        self.tell(prompt)
        return self.result(before + 1)

    def tell(self, prompt: str) -> None:
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def result(self, number: int) -> Json:
        """Return the result of the turn with this number, counted from 1."""
        self.until(lambda: len(self.results) >= number, f"result {number}")
        return self.results[number - 1]

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until the condition holds after another message of the client."""
        with self._changed:
            if not self._changed.wait_for(condition, PATIENCE):
                raise AssertionError(f"no {what}; the client said:\n{self.shown}")

    @property
    def results(self) -> list[Json]:
        return self.of("result")

    def of(self, kind: str, subtype: str | None = None) -> list[Json]:
        """Return the messages of a type, and of a subtype if given."""
        found = [message for message in self.said if message["type"] == kind]
        return [it for it in found if subtype in (None, it.get("subtype"))]

    @property
    def session(self) -> str:
        """Return the id of the session, from its first message."""
        self.until(lambda: self.said, "message")
        return str(self.said[0]["session_id"])

    def hooks(self, event: str) -> list[Json]:
        """Return `exit_code`, `stdout`, `stderr` and `outcome` of each hook of this event."""
        ended = self.of("system", "hook_response")
        return [message for message in ended if message["hook_event"] == event]

    @property
    def notices(self) -> str:
        """Return the messages of hooks to the user."""
        return "\n".join(it["content"] for it in self.of("system", "informational"))

    @property
    def shown(self) -> str:
        return "\n".join(json.dumps(message, ensure_ascii=False) for message in self.said)

    def close(self) -> int:
        """End the session as a user does; return the exit code of the client."""
        assert self.process.stdin
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self._reader.join()
        return code

    def terminate(self) -> None:
        """End the client with SIGTERM."""
        self.process.terminate()
        self.close()

    def kill(self) -> None:
        """End the client with SIGKILL."""
        self.process.kill()
        self.close()
