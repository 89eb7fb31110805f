"""What a pipe gets: UTF-8 with line feeds, whatever the console of the system speaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import A
from tests.support.hook_project import HOOK, signal_of

TEXTS = ("Ende → gut 🙂", "日本: größer", "✓ ✗")


def printed(root: Path, *args: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Run a command whose output is a pipe, as a shell of its user would."""
    env = {**os.environ, **A, "PYTHONUTF8": "0"}
    env.pop("PYTHONIOENCODING", None)
    done = subprocess.run(
        [sys.executable, "-m", "gsd_fsm", *args], cwd=root, env=env, input=stdin,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with a loop that has names of several scripts."""
    root = tmp_path / "Prøjekt 日本"
    root.mkdir()
    goal, *criteria = TEXTS
    named = [word for text in criteria for word in ("--criterion", text)]
    code, out, err = printed(root, "start", "goal", goal, *named, "--mode", "yolo")
    assert code == 0, (out, err)
    return root


def test_output_in_a_pipe_is_utf_8_with_line_feeds(root: Path) -> None:
    signal = signal_of(root, "Status", "session-a").encode()
    for command, stdin, texts in (
        (("status",), b"", TEXTS),
        (("statusline",), signal, ("gsd-fsm goal ▸ 0/20 · 0/2 criteria · running",)),
        (("check",), b"", ()),
        (("replay",), b"", TEXTS[:1]),
        (("criterion", "no → such", "met"), b"", ("no → such", "→ Use one of")),
        (("hook", "--path"), b"", (str(HOOK),)),
    ):
        _, out, err = printed(root, *command, stdin=stdin)
        shown = (out + err).decode("utf-8")
        assert [text for text in texts if text not in shown] == [], command
        assert shown.endswith("\n")
        assert "\r" not in shown


def test_json_in_a_pipe_is_utf_8_or_ascii(root: Path) -> None:
    code, out, _ = printed(root, "status", "--json")
    assert (code, json.loads(out)["goal"]) == (0, TEXTS[0])
