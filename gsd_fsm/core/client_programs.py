"""Recognise coding clients by their command lines, and tell whether one runs without a user."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

# The client of a program, or of a script that an interpreter runs. Editors are not listed: a
# terminal inside an editor belongs to the user.
_PROGRAMS = {
    "claude": "claude", "codex": "codex", "gemini": "gemini", "qwen": "qwen", "copilot": "copilot",
    "kimi": "kimi", "kimi-cli": "kimi", "kimi-code": "kimi", "opencode": "opencode",
    "kilo": "kilo", "kilocode": "kilo", "cursor-agent": "cursor", "auggie": "auggie",
    "goose": "goose", "amp": "amp", "droid": "droid", "grok": "grok", "pi": "pi", "vibe": "vibe",
    "openhands": "openhands", "cline": "cline", "cn": "continue", "crush": "crush",
    "aider": "aider", "devin": "devin", "junie": "junie", "qodercli": "qoder",
    "kiro-cli-chat": "kiro", "qchat": "kiro",
}  # fmt: skip
# Parts of the path of a program or script, for those whose names say nothing (cli.js, 2.1.325).
_PACKAGES = (
    ("/@anthropic-ai/claude-code", "claude"), ("/share/claude/versions/", "claude"),
    ("/@openai/codex", "codex"), ("/@google/gemini-cli/", "gemini"),
    ("/@qwen-code/qwen-code/", "qwen"), ("/@github/copilot", "copilot"),
    ("/node_modules/opencode-", "opencode"), ("/@kilocode/cli", "kilo"),
    ("/share/cursor-agent/versions/", "cursor"), ("/@augmentcode/auggie/", "auggie"),
    ("/@sourcegraph/amp/", "amp"), ("/pi-coding-agent/", "pi"),
    ("/@continuedev/cli/", "continue"), ("/node_modules/cline/", "cline"),
)  # fmt: skip
# Packages that Python runs with `-m`.
_MODULES = {"kimi_cli": "kimi", "aider": "aider", "openhands": "openhands", "vibe": "vibe"}
_INTERPRETERS = ("node", "bun", "deno", "python", "pypy")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish"))
# Options of interpreters that take a value.
_WITH_VALUE = frozenset(("-r", "--require", "--import", "--loader", "-W", "-X", "-o"))
# Words that make a client answer one prompt and exit.
_PRINT = frozenset(("-p", "--print", "--prompt"))
_ONE_PROMPT = {
    "codex": frozenset(("exec", "e")), "droid": frozenset(("exec",)),
    "opencode": frozenset(("run",)), "kilo": frozenset(("run",)), "crush": frozenset(("run",)),
    "goose": frozenset(("run",)), "amp": frozenset(("-x", "--execute")),
    "openhands": frozenset(("--headless",)), "aider": frozenset(("-m", "--message")),
}  # fmt: skip


def client_of_command(programs: Iterable[str], arguments: list[str]) -> str:
    """Return the client that a process runs, "" if it runs something else.

    `programs` are the known names and paths of its executable; its first argument is another one.
    """
    names = [*programs, *arguments[:1]]
    for name in names:
        client = _client_of_file(name)
        if client:
            return client
    if any(_interprets(_base(name)) for name in names):
        return _client_of_script(arguments[1:])
    return ""


def is_headless_command(client: str, arguments: list[str]) -> bool:
    """Return whether this command line of a client is for one prompt, without a user."""
    words = _ONE_PROMPT.get(client, _PRINT)
    for argument in arguments[1:]:
        if argument == "--":
            break
        if argument.partition("=")[0] in words:
            return True
    return False


def _base(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    # A login shell is named "-bash".
    return (name[:-4] if name.lower().endswith(".exe") else name).lstrip("-")


def _client_of_file(path: str) -> str:
    client = _PROGRAMS.get(_base(path), "")
    if not client:
        plain = path.replace("\\", "/")
        client = next((name for part, name in _PACKAGES if part in plain), "")
    return client


def _interprets(name: str) -> bool:
    return name in _SHELLS or name.startswith(_INTERPRETERS)


def _client_of_script(arguments: list[str]) -> str:
    """Return the client whose script or module an interpreter runs."""
    skip = False
    for at, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument == "-m":
            module = arguments[at + 1] if at + 1 < len(arguments) else ""
            return _MODULES.get(module.partition(".")[0], "")
        elif _is_code_option(argument):
            return ""
        elif argument in _WITH_VALUE:
            skip = True
        elif not argument.startswith("-") and argument != "run":  # bun run FILE
            return _client_of_file(argument)
    return ""


def _is_code_option(argument: str) -> bool:
    """Return whether code follows instead of a script: -c, -lc, -e, -pe, --eval, --print."""
    if argument in ("--eval", "--print", "-p"):
        return True
    short = argument[1:] if argument.startswith("-") and not argument.startswith("--") else ""
    return "c" in short or "e" in short
