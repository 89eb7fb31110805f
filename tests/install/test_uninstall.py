"""`uninstall`: what was there before is there again, byte for byte."""

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
from gsd_fsm.install.backup import data_directory, forget, remember
from gsd_fsm.install.hook_entries import CAP, EVENTS, ours
from gsd_fsm.install.interpreter import Interpreter
from tests.documents.test_json_text import layouts, values
from tests.install.conftest import SETTINGS, Client, listing
from tests.support.command_line import Here

PYTHON = Interpreter("/usr/bin/python3", "3.11.0", "cpython-311")


@pytest.mark.parametrize("scope", installer.SCOPES)
def test_an_untouched_file_gets_its_bytes_back(here: Here, client: Client, scope: str) -> None:
    raw = b'\xef\xbb\xbf{ "a" :1,\r\n\r\n "hooks" : { }, "env":{ } }  '
    path = client.write(raw, scope)
    here.ok("init", "--scope", scope, "--raise-cap", "20", "--yes")
    assert path.read_bytes() != raw
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == raw


def test_nothing_is_left_of_an_installation_that_made_its_file(here: Here, client: Client) -> None:
    before = listing(client.home) | listing(here.root)
    here.ok("init", "--yes")
    here.ok("uninstall", "--yes")
    assert listing(client.home) | listing(here.root) == before
    assert not (here.root / ".claude").exists()
    assert not client.data.exists()


def test_a_second_uninstall_has_nothing_to_do(here: Here) -> None:
    answer = here.ok("uninstall", "--yes")
    assert "not installed" in answer.out
    assert here.ok("uninstall", "--json").json == {
        "removed": [],
        "left": [],
        "unheld": [],
    }


def test_what_others_wrote_since_stays(here: Here, client: Client) -> None:
    client.write(SETTINGS)
    here.ok("init", "--raise-cap", "20", "--yes")
    document = client.read()
    document["later"] = True
    document["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "later"}]})
    client.write(document)
    here.ok("uninstall", "--yes")
    left = client.read()
    assert left == {
        **SETTINGS,
        "later": True,
        "hooks": {
            **SETTINGS["hooks"],  # type: ignore[dict-item]
            "Stop": [document["hooks"]["Stop"][0], *SETTINGS["hooks"]["Stop"]],  # type: ignore[index]
        },
    }


def test_a_made_file_that_others_use_now_stays_without_us(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    document = client.read()
    document["model"] = "opus"
    client.write(document)
    here.ok("uninstall", "--yes")
    assert client.read() == {"model": "opus"}


def test_a_cap_that_somebody_else_set_stays(here: Here, client: Client) -> None:
    client.write({"env": {CAP: "12"}})
    here.ok("init", "--yes")
    document = client.read()
    client.write({**document, "more": 1})
    here.ok("uninstall", "--yes")
    assert client.read() == {"env": {CAP: "12"}, "more": 1}
    here.ok("init", "--raise-cap", "30", "--yes")
    client.write({**client.read(), "more": 2})
    here.ok("uninstall", "--yes")
    assert client.read() == {"env": {CAP: "12"}, "more": 2}
    here.ok("init", "--raise-cap", "30", "--yes")
    document = client.read()
    document["env"][CAP] = "40"
    client.write(document)
    here.ok("uninstall", "--yes")
    assert client.read()["env"] == {CAP: "40"}


def test_a_cap_that_was_a_number_keeps_its_letters(here: Here, client: Client) -> None:
    raw = b'{"env": {"%s": 20}, "a": 1}' % CAP.encode()
    path = client.write(raw)
    here.ok("init", "--raise-cap", "30", "--yes")
    path.write_bytes(path.read_bytes().replace(b'"a": 1', b'"a": 2'))
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == raw.replace(b'"a": 1', b'"a": 2')
    here.ok("init", "--raise-cap", "20", "--yes")
    assert b": 20}" in path.read_bytes()


def test_settings_that_outlive_the_hook_end_no_turn_in_an_error(
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
    assert b"gsd-fsm init" in done.stderr


def test_a_loop_that_nothing_holds_any_more_is_told(here: Here, client: Client) -> None:
    loop = here.start("goal", "g")
    here.ok("init", "--yes")
    here.ok("init", "--scope", "user", "--yes")
    assert here.ok("uninstall", "--scope", "user", "--yes", "--json").json["unheld"] == []
    told = f"Loop {loop} is running and no longer held: gsd-fsm pause, or cancel"
    assert told in here.ok("uninstall", "--yes").out
    here.ok("pause")
    here.ok("init", "--yes")
    assert here.ok("uninstall", "--yes", "--json").json["unheld"] == []
    here.ok("init", "--yes")
    here.journal.write_bytes(b"broken\n")
    assert here.ok("uninstall", "--yes", "--json").json["unheld"] == []


def test_an_upgrade_in_between_still_restores_the_first_original(
    here: Here, client: Client, tmp_path: Path
) -> None:
    path = client.write(b'{"a":    1}')
    here.ok("init", "--yes")
    link = tmp_path / "python"
    link.symlink_to(client.hooks()[0]["command"])
    here.ok("init", "--python", str(link), "--yes")
    here.ok("init", "--raise-cap", "9", "--yes")
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == b'{"a":    1}'


def test_two_scopes_are_told_apart_and_the_last_takes_the_hook_along(
    here: Here, client: Client
) -> None:
    here.ok("init", "--scope", "user", "--yes")
    here.ok("init", "--scope", "project", "--yes")
    answer = here.refused(2, "uninstall", "--yes")
    assert "user, project" in answer.err
    answer = here.ok("uninstall", "--scope", "user", "--yes")
    assert f"Still installed (project): {client.files['project']}" in answer.out
    assert client.hook.exists()
    assert len(client.hooks("project")) == len(EVENTS)
    here.ok("uninstall", "--yes")
    assert not client.data.exists()


def test_all_means_every_project_of_this_user(here: Here, client: Client, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    here.ok("init", "--yes")
    here.ok("init", "--scope", "user", "--yes")
    here.ok("--project", str(other), "init", "--scope", "project", "--yes")
    here.ok("uninstall", "--scope", "local", "--yes")
    assert client.hook.exists()
    here.refused(2, "uninstall", "--all", "--scope", "user")
    assert len(here.ok("uninstall", "--all", "--yes", "--json").json["removed"]) == 2
    assert not (other / ".claude").exists()
    assert not client.data.exists()


def test_a_project_that_is_gone_does_not_hold_the_hook(
    here: Here, client: Client, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    here.ok("--project", str(other), "init", "--yes")
    here.ok("init", "--yes")
    (other / ".claude" / "settings.local.json").unlink()
    here.ok("uninstall", "--yes")
    assert not client.data.exists()


def test_it_asks_first_and_leaves_journals_alone(here: Here, client: Client) -> None:
    here.start("goal", "g")
    here.ok("init", "--yes")
    before = listing(here.root)
    assert "--yes" in here.refused(2, "uninstall", stdin=b"y\n").err
    assert listing(here.root) == before
    journal = listing(here.gsd)
    here.ok("uninstall", "--yes")
    assert listing(here.gsd) == journal
    assert here.status()["status"] == "running"


def test_without_its_memory_only_ours_is_taken_out(here: Here, client: Client) -> None:
    path = client.write(SETTINGS)
    before = path.read_bytes()
    here.ok("init", "--yes")
    for record in (client.data / "installed").iterdir():
        record.write_text("{broken")
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == before


events = st.sampled_from([*EVENTS, "PreToolUse", "Notification"])
foreign = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=9)})
groups = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(foreign, max_size=2)}) | values, max_size=3
)
documents = st.builds(
    lambda rest, known: {**rest, **known},
    st.dictionaries(st.text(), values, max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "hooks": st.dictionaries(events, groups, max_size=4),
            "env": st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=2),
            "disableAllHooks": st.booleans(),
        },
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    document=documents,
    layout=layouts,
    cap=st.none() | st.just("20"),
    edge=st.sampled_from(["", "\n", " \r\n"]),
)
def test_any_settings_survive_init_and_uninstall(
    tmp_path: Path, document: dict, layout: dict, cap: str | None, edge: str
) -> None:
    raw = (edge + json.dumps(document, **layout) + edge).encode("utf-8", "surrogatepass")
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    try:
        change, record = installer.plan_install("project", str(tmp_path), PYTHON, cap)
    except UsageError:
        assert b"\xed" in raw  # half a character outside of JSON's escapes
        return
    remember(record)
    write_change(change)
    written = json.loads(path.read_bytes())
    assert sorted(found.event for found in ours(written)) == sorted(EVENTS)
    again, _ = installer.plan_install("project", str(tmp_path), PYTHON, cap)
    assert again.before == again.after
    installer.remove(installer.plan_removal(path))
    assert path.read_bytes() == raw
    # The same without the memory of it: nothing but ours is taken out.
    write_change(change)
    forget(path)
    left = json.loads(installer.plan_removal(path).after or b"")
    assert without_empties(left, cap) == without_empties(document, cap)


def without_empties(document: dict, cap: str | None) -> dict:
    """What is left when lists and objects that our hooks may have left empty do not count."""
    hooks = {event: groups for event, groups in document.get("hooks", {}).items() if groups}
    env = {k: v for k, v in document.get("env", {}).items() if not (cap and k == CAP)}
    rest = {k: v for k, v in document.items() if k not in ("hooks", "env")}
    return {**rest, **({"hooks": hooks} if hooks else {}), **({"env": env} if env else {})}


def test_the_data_directory_is_that_of_the_test() -> None:
    assert str(data_directory()).startswith(str(Path.home()))
