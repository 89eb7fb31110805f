"""Permission rules: every command that texts name for agents, and none that brings a new one."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsd_fsm.cli import COMMANDS
from gsd_fsm.config.program import program_by_path
from gsd_fsm.install.permissions import ALLOWED, ASKED, rules
from tests.support.client_settings import Client
from tests.support.command_line import Here

PACKAGE = Path(__file__).parents[2] / "gsd_fsm"
# What writes blocks, prompts and the answer of `next`.
TEXTS = [
    *(PACKAGE / "core" / "text").glob("*.py"), *(PACKAGE / "core" / "hook").glob("*.py"),
    *(PACKAGE / "subagents").glob("*.py"), *(PACKAGE / "verify").glob("*.py"),
    PACKAGE / "core" / "loop" / "limits.py", PACKAGE / "engine" / "status.py",
]  # fmt: skip


def named_commands(path: Path) -> Iterator[str]:
    """Yield verb and, for a stage, its name of every command that this module composes."""
    tree = ast.parse(path.read_text("utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        texts = [it.value for it in ast.walk(function) if isinstance(it, ast.Constant)]
        calls = [it for it in ast.walk(function) if isinstance(it, ast.Call)]
        for call in calls:
            if not (isinstance(call.func, ast.Name) and call.func.id == "command_line"):
                continue
            verb = call.args[0]
            found = [verb.value] if isinstance(verb, ast.Constant) else texts
            yield from (it for it in found if isinstance(it, str) and it.split()[:1] != [])
        if function.name in ("_steps", "_goal_steps"):
            for text in texts:
                yield from (part.partition("}")[0] for part in str(text).split("{")[1:])


def test_rules_cover_every_command_that_texts_name() -> None:
    found = {it for path in TEXTS for it in named_commands(path)}
    named = {it for it in found if it.split()[0] in COMMANDS}
    assert len(named) > 20
    for command in named:
        assert f"{command} ".startswith(tuple(f"{verb} " for verb in (*ALLOWED, *ASKED))), command


@pytest.mark.parametrize(
    "command",
    [
        *("start --check x=ANYTHING", "import FILE", "run", "hook", "init", "trust", "fsck"),
        *("stage --shape-file F", "stage decompose --shape-file F", "resume", "accept", "cancel"),
        *("--project DIR start", "--loop lp-1 start", "simulate -", "rollback T01", "config"),
    ],
)
def test_rules_match_no_command_that_brings_another(command: str) -> None:
    for program in ("gsd-fsm", program_by_path()):
        matching = [it for it in rules() if f"Bash({program} {command}".startswith(it[:-3])]
        assert matching == []


def test_rules_name_the_program_and_its_path_and_existing_commands() -> None:
    assert {verb.split()[0] for verb in (*ALLOWED, *ASKED)} <= {*COMMANDS}
    assert rules()[0] == "Bash(gsd-fsm answer:*)"
    assert f"Bash({program_by_path()} stage shape:*)" in rules()


def test_init_allow_keeps_the_rules_of_the_user(here: Here, client: Client) -> None:
    own = {"permissions": {"allow": ["Bash(gsd-fsm next:*)", "WebFetch"], "deny": []}}
    before = client.write(own).read_bytes()
    for _ in range(2):
        here.ok("init", "--allow", "--yes")
        allowed = client.read()["permissions"]["allow"]
        assert allowed[:2] == own["permissions"]["allow"]
        assert sorted(allowed) == sorted({*rules(), "WebFetch"})
    here.ok("uninstall", "--yes")
    assert client.files["local"].read_bytes() == before


def test_init_allow_replaces_rules_for_an_old_path_of_the_program(
    here: Here, client: Client
) -> None:
    here.ok("init", "--allow", "--yes")
    record = client.record()
    facts = json.loads(record.read_text())
    old = "Bash(/old/gsd-fsm next:*)"
    record.write_text(json.dumps({**facts, "allowed": [*facts["allowed"], old]}))
    document = client.read()
    document["permissions"]["allow"].insert(3, old)
    client.write(document)
    here.ok("init", "--allow", "--yes")
    assert client.read()["permissions"]["allow"] == rules()


def test_init_allow_notes_that_shared_rules_need_the_trust_of_the_client(here: Here) -> None:
    for scope, noted in (("project", True), ("local", False), ("user", False)):
        answer = here.ok("init", "--allow", "--scope", scope, "--yes", "--json").json
        assert ("trust dialog" in " ".join(answer["notes"])) is noted
