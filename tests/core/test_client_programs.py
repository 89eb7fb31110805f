"""Command lines of coding clients, and of programs that only look like one."""

from __future__ import annotations

import shlex

import pytest

from gsd_fsm.core.client_programs import client_of_command, is_headless_command

CLIENTS = {
    "claude": "claude",
    "/home/u/.local/bin/claude --continue": "claude",
    "/home/u/.local/share/claude/versions/2.1.325 --resume": "claude",
    "node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js -p hi": "claude",
    "node --max-old-space-size=8192 /usr/local/bin/claude": "claude",
    "/opt/npm/node_modules/@anthropic-ai/claude-code-linux-x64/claude": "claude",
    "'C:\\Users\\u\\AppData\\claude.exe' --debug": "claude",
    "bash /home/u/bin/claude": "claude",
    "node -r ts-node/register /usr/bin/codex": "codex",
    "/usr/lib/node_modules/@openai/codex/vendor/x86_64/codex/codex exec hi": "codex",
    "node /usr/lib/node_modules/@google/gemini-cli/dist/index.js": "gemini",
    "node /usr/bin/qwen --yolo": "qwen",
    "/usr/bin/node /usr/lib/node_modules/@github/copilot/npm-loader.js": "copilot",
    "python3.12 /home/u/.local/bin/kimi": "kimi",
    "python -I -m kimi_cli.cli": "kimi",
    "/home/u/.opencode/bin/opencode": "opencode",
    "bun run /home/u/.bun/bin/kilo": "kilo",
    "/home/u/.local/share/cursor-agent/versions/2026/node index.js": "cursor",
    "cursor-agent": "cursor",
    "auggie": "auggie",
    "goose session": "goose",
    "amp": "amp",
    "droid": "droid",
    "grok": "grok",
    "pi": "pi",
    "vibe": "vibe",
    "openhands": "openhands",
}
OTHERS = [
    "vim claude.md", "vim claude", "less /usr/bin/claude", "emacs -nw codex", "nvim gemini",
    "/home/claude/bin/python work.py", "/home/codex/.venv/bin/python -m pytest", "-bash",
    "python tests/test_claude.py", "python claude.py", "bash claude.sh", "bash -c claude",
    "bash -lc 'cd codex && make'", "sh -c 'echo claude'", "node -e claude", "node server.js claude",
    "/usr/share/code/code --user-data-dir /home/u/.claude", "cursor .", "zed", "idea.sh",
    "windsurf", "/Applications/Claude.app/Contents/MacOS/Claude", "tmux new -s claude",
    "ssh claude@host", "git log --author claude", "grep -r gemini", "make claude",
    "/usr/bin/python3 /home/me/src/claude-code/tool.py", "kiro-cli-term", "sudo -u codex bash", "",
]  # fmt: skip


@pytest.mark.parametrize(("command", "client"), CLIENTS.items())
def test_client_is_recognised_by_program_script_or_package(command: str, client: str) -> None:
    assert client_of_command([], shlex.split(command)) == client


@pytest.mark.parametrize("command", OTHERS)
def test_editor_file_user_or_argument_with_the_name_of_a_client_is_none(command: str) -> None:
    assert client_of_command([], shlex.split(command)) == ""


def test_client_is_recognised_by_its_executable_whatever_it_calls_itself() -> None:
    assert client_of_command(["claude", "/usr/bin/claude"], ["innocent"]) == "claude"
    assert client_of_command(["2.1.325", "/u/.local/share/claude/versions/2.1.325"], []) == "claude"
    assert client_of_command(["python3", "/usr/bin/python3"], ["python3", "-"]) == ""


@pytest.mark.parametrize(
    ("command", "headless"),
    [
        ("claude -p hi", True),
        ("claude --print=x hi", True),
        ("claude hi", False),
        ("claude -- -p", False),
        ("codex exec --json hi", True),
        ("codex -p profile", False),
        ("node /usr/bin/gemini --prompt hi", True),
        ("gemini -i hi", False),
        ("opencode run hi", True),
        ("opencode", False),
        ("amp -x hi", True),
    ],
)
def test_command_line_for_one_prompt_is_headless(command: str, headless: bool) -> None:
    arguments = shlex.split(command)
    assert is_headless_command(client_of_command([], arguments), arguments) is headless
