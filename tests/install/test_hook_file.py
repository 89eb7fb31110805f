"""start and import replace an older installed hook, or are refused; other loops are warned."""

from __future__ import annotations

import pytest

from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.loop.events.sessions import HOOK_VERSION
from gsd_fsm.install.hook_file import packaged_hook
from tests.support.client_settings import Client
from tests.support.command_line import A, B, Here
from tests.support.events import append, draft
from tests.support.foreign_files import RALPH
from tests.support.hook_agent import Agent

OLD = b"import sys\n\n\ndef main():\n    sys.exit(9)\n"
SESSION = {"session": "session-a"}


@pytest.mark.parametrize("command", [("start", "goal", "g"), ("import", "ralph.md")])
def test_start_and_import_replace_an_older_installed_hook_and_its_bytecode(
    here: Here, client: Client, command: tuple[str, ...]
) -> None:
    (here.root / "ralph.md").write_text(RALPH)
    here.ok("init", "--yes")
    client.hook.write_bytes(OLD)
    stale = client.hook.parent / "__pycache__" / "gsd_fsm_hook.cpython-38.pyc"
    stale.write_bytes(b"old")
    note = f"Updated the installed hook: {client.hook}."
    assert note in here.ok(*command).out
    assert client.hook.read_bytes() == packaged_hook().read_bytes()
    assert not stale.exists()
    assert len([*client.hook.parent.rglob("*.pyc")]) == 3  # compiled by the interpreter of init
    assert here.run("doctor").code == 0
    assert "Updated" not in here.ok("start", "goal", "g", env=B).out


def test_start_without_an_installed_hook_writes_none_and_keeps_a_newer_one(
    here: Here, client: Client
) -> None:
    here.start("goal", "g")
    assert not client.data.exists()
    here.ok("init", "--yes")
    newer = b"# HOOK_VERSION = %d\n" % (HOOK_VERSION + 1)
    client.hook.write_bytes(newer)
    here.start("goal", "g", "--fresh")
    assert client.hook.read_bytes() == newer


def test_start_is_refused_before_any_event_if_an_older_hook_cannot_be_replaced(
    here: Here, client: Client
) -> None:
    here.ok("init", "--yes")
    client.hook.write_bytes(OLD)
    client.hook.chmod(0o400)
    refused = here.refused(6, "start", "goal", "g").err
    assert f"the installed hook is outdated and cannot be replaced: {client.hook}" in refused
    assert refused.endswith("→ Run: gsd-fsm init\n")
    assert not here.gsd.exists()
    assert client.hook.read_bytes() == OLD
    client.hook.chmod(0o600)
    here.ok("init", "--yes")
    here.ok("start", "goal", "g")


def test_start_warns_of_another_loop_whose_last_stop_an_older_hook_decided(here: Here) -> None:
    loop = here.start("goal", "g", env=A)
    decided = {"code": "continue", "reason": "Continue.", "signal": "1" * 16, "copy": "plugin"}
    append(Journal(str(here.gsd)), draft("iteration", loop, "hook", decided, **SESSION))
    assert f"An older hook decided the last stop of {loop}." in here.ok("start", "goal", "g").out
    assert "older hook" not in here.ok("start", "goal", "g", "--fresh", env=A).out


def test_hook_names_its_version_and_start_does_not_warn_of_it(agent: Agent) -> None:
    agent.here.start("goal", "g", "--criterion", "c", env=agent.shell)
    agent.blocked()
    assert agent.here.last()["data"]["hook"] == HOOK_VERSION
    assert agent.here.last()["v"] == 1
    assert "older hook" not in agent.here.ok("start", "goal", "g").out
