"""`uninstall` restores the settings byte for byte, and keeps changes that others made since."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.files import write_change
from gsd_fsm.install import installer
from gsd_fsm.install.hook_entries import CAP, EVENTS, ours
from gsd_fsm.install.interpreter import Interpreter
from gsd_fsm.install.record import forget, remember
from tests.support.client_settings import SETTINGS, Client, listing
from tests.support.command_line import Here
from tests.support.lines import json_layouts, json_values

PYTHON = Interpreter("/usr/bin/python3", "3.11.0", "cpython-311")
ODD = b'\xef\xbb\xbf{ "a" :1,\r\n\r\n "hooks" : { "Stop" :[ ] }, "env":{ } }  '


@pytest.mark.parametrize(
    ("scope", "raw"),
    [
        ("user", ODD),
        ("project", ODD),
        ("local", ODD),
        ("local", b"{ }"),
        ("local", b"{\n}\n"),
        ("local", b' {"env": {"%s":  20}}' % CAP.encode()),
    ],
)
def test_uninstall_restores_every_byte(here: Here, client: Client, scope: str, raw: bytes) -> None:
    path = client.write(raw, scope)
    here.ok("init", "--scope", scope, "--raise-cap", "30", "--status-line", "--yes")
    assert path.read_bytes() != raw
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == raw
    assert not client.data.exists()


def test_uninstall_after_several_inits_restores_the_first_state(
    here: Here, client: Client, tmp_path: Path
) -> None:
    path = client.write(ODD)
    here.ok("init", "--yes")
    link = tmp_path / "python"
    link.symlink_to(client.hooks()[0]["command"])
    here.ok("init", "--python", str(link), "--yes")
    here.ok("init", "--raise-cap", "9", "--yes")
    here.ok("init", "--raise-cap", "12", "--yes")
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == ODD


def test_uninstall_removes_a_file_and_a_directory_that_init_created(
    here: Here, client: Client
) -> None:
    before = client.all_files()
    here.ok("init", "--yes")
    here.ok("uninstall", "--yes")
    assert client.all_files() == before
    assert not (here.root / ".claude").exists()
    assert not client.data.exists()


def test_uninstall_again_has_nothing_to_do(here: Here) -> None:
    assert "not installed" in here.ok("uninstall", "--yes").out
    assert here.ok("uninstall", "--json").json == {"removed": [], "left": [], "unheld": []}


def test_uninstall_keeps_what_others_added_since(here: Here, client: Client) -> None:
    client.write(SETTINGS)
    here.ok("init", "--raise-cap", "20", "--status-line", "--yes")
    document = client.read()
    later = {"hooks": [{"type": "command", "command": "later"}]}
    document["later"] = True
    document["hooks"]["Stop"].insert(0, later)
    client.write(document)
    here.ok("uninstall", "--yes")
    hooks = {**SETTINGS["hooks"], "Stop": [later, *SETTINGS["hooks"]["Stop"]]}
    assert client.read() == {**SETTINGS, "later": True, "hooks": hooks}


@pytest.mark.parametrize("by_hand", [(), ("hooks",), ("statusLine",)])
def test_uninstall_keeps_a_created_file_that_others_use_now(
    here: Here, client: Client, by_hand: tuple[str, ...]
) -> None:
    here.ok("init", "--status-line", "--yes")
    document = client.read()
    for name in by_hand:
        del document[name]
    client.write({**document, "model": "opus"})
    here.ok("uninstall", "--yes")
    assert client.read() == {"model": "opus"}


def test_uninstall_restores_a_cap_that_was_there_and_keeps_one_that_was_set_since(
    here: Here, client: Client
) -> None:
    for number, since in enumerate((None, None, "40")):
        client.write({"env": {CAP: "12"}})
        here.ok("init", *(["--raise-cap", "30"] if number else []), "--yes")
        document = client.read()
        document["env"][CAP] = since or document["env"][CAP]
        client.write({**document, "more": 1})
        here.ok("uninstall", "--yes")
        assert client.read() == {"env": {CAP: since or "12"}, "more": 1}


def test_hook_that_settings_outlive_ends_no_turn_in_an_error(
    here: Here, client: Client, tmp_path: Path
) -> None:
    here.ok("init", "--yes")
    hook = client.hooks()[0]
    here.root.joinpath(".claude").rename(tmp_path / "moved")
    here.ok("uninstall", "--all", "--yes")
    assert not client.data.exists()
    done = subprocess.run(
        [hook["command"], *hook["args"]], input=b"{}\n", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"Run: gsd-fsm init" in done.stderr


def test_uninstall_names_running_loops_that_no_hook_continues(here: Here, client: Client) -> None:
    loop = here.start("goal", "g")
    here.ok("init", "--yes")
    here.ok("init", "--scope", "user", "--yes")
    assert here.ok("uninstall", "--scope", "user", "--yes", "--json").json["unheld"] == []
    told = f"Loop {loop} is running without a hook. To pause it, run: gsd-fsm pause"
    assert told in here.ok("uninstall", "--yes").out
    here.ok("pause")
    here.ok("init", "--yes")
    assert here.ok("uninstall", "--yes", "--json").json["unheld"] == []
    here.ok("init", "--yes")
    here.journal.write_bytes(b"broken\n")
    assert here.ok("uninstall", "--yes", "--json").json["unheld"] == []


def test_uninstall_removes_the_hook_with_the_last_settings_that_use_it(
    here: Here, client: Client, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    here.ok("init", "--scope", "user", "--yes")
    here.ok("init", "--scope", "project", "--yes")
    here.ok("--project", str(other), "init", "--scope", "project", "--yes")
    here.ok("--project", str(other), "init", "--yes")
    assert "several scopes: user, project" in here.refused(2, "uninstall", "--yes").err
    here.refused(2, "uninstall", "--all", "--scope", "user")
    answer = here.ok("uninstall", "--scope", "user", "--yes")
    assert f"Still installed (project): {client.files['project']}" in answer.out
    assert client.hook.exists()
    assert len(client.hooks("project")) == len(EVENTS)
    (other / ".claude" / "settings.local.json").unlink()  # its record does not count any more
    assert len(here.ok("uninstall", "--all", "--yes", "--json").json["removed"]) == 2
    assert not (other / ".claude").exists()
    assert not client.data.exists()


def test_uninstall_asks_first_and_keeps_journals(here: Here) -> None:
    here.start("goal", "g")
    here.ok("init", "--yes")
    before = listing(here.root)
    assert "--yes" in here.refused(2, "uninstall", stdin=b"y\n").err
    assert listing(here.root) == before
    journal = listing(here.gsd)
    here.ok("uninstall", "--yes")
    assert listing(here.gsd) == journal
    assert here.status()["status"] == "running"


events = st.sampled_from([*EVENTS, "PreToolUse", "Notification"])
foreign = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=9)})
groups = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(foreign, max_size=2)}) | json_values, max_size=3
)
documents = st.builds(
    lambda rest, known: {**rest, **known},
    st.dictionaries(st.text(), json_values, max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "hooks": st.dictionaries(events, groups, max_size=4),
            "env": st.dictionaries(
                st.just(CAP) | st.text(max_size=9), st.text(max_size=9), max_size=2
            ),
            "disableAllHooks": st.booleans(),
        },
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    document=documents,
    layout=json_layouts,
    cap=st.none() | st.just("20"),
    edge=st.sampled_from(["", "\n", " \r\n"]),
    line=st.booleans(),
)
def test_any_settings_survive_init_and_uninstall(
    tmp_path: Path, *, document: dict, layout: dict, cap: str | None, edge: str, line: bool
) -> None:
    raw = (edge + json.dumps(document, **layout) + edge).encode("utf-8", "surrogatepass")
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    try:
        change, record = installer.plan_install("project", str(tmp_path), PYTHON, cap, line=line)
    except UsageError:
        assert b"\xed" in raw  # half a character outside of JSON's escapes
        return
    remember(record)
    write_change(change)
    written = json.loads(path.read_bytes())
    assert sorted(found.event for found in ours(written)) == sorted(EVENTS)
    again, same = installer.plan_install("project", str(tmp_path), PYTHON, cap, line=line)
    assert (again.before, same) == (again.after, record)
    # Others may have edited the file since.
    path.write_bytes(path.read_bytes() + b"\n")
    installer.remove(installer.plan_removal(path))
    assert path.read_bytes() == raw + b"\n"
    # Without the record, only our own parts are removed, and parts that this leaves empty.
    write_change(change._replace(before=raw + b"\n"))
    forget(path)
    left = json.loads(installer.plan_removal(path).after or b"")
    assert without_empties(left, cap) == without_empties(document, cap)


def without_empties(document: dict, cap: str | None) -> dict:
    hooks = {event: groups for event, groups in document.get("hooks", {}).items() if groups}
    env = {k: v for k, v in document.get("env", {}).items() if not (cap and k == CAP)}
    rest = {k: v for k, v in document.items() if k not in ("hooks", "env")}
    return {**rest, **({"hooks": hooks} if hooks else {}), **({"env": env} if env else {})}
