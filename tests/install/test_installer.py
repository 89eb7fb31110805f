"""`init` adds the hook to settings of any kind; `uninstall` restores them byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.files import write_change
from gsd_fsm.install import installer
from gsd_fsm.install.hook_entries import CAP, CODE, EVENTS, TIMEOUT, ours
from gsd_fsm.install.interpreter import Interpreter
from gsd_fsm.install.permissions import rules
from gsd_fsm.install.record import forget, remember
from tests.support.client_settings import FOREIGN, SETTINGS, Client, listing
from tests.support.command_line import Here, Project
from tests.support.lines import json_layouts, json_values

PYTHON = Interpreter("/usr/bin/python3", "3.11.0", "cpython-311")
ODD = b'\xef\xbb\xbf{ "a" :1,\r\n\r\n "hooks" : { "Stop" :[ ] }, "env":{ } }  '


def run_entry(hook: dict[str, Any], root: Path) -> tuple[int, bytes, bytes]:
    """Run a hook of the settings at a stop; return exit code, output and errors."""
    payload = json.dumps({"hook_event_name": "Stop", "session_id": "s", "cwd": str(root)}).encode()
    command = [hook["command"], *hook["args"]]
    done = subprocess.run(command, input=payload, cwd=root, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_init_registers_a_copy_of_the_hook_and_a_lasting_python(here: Here, client: Client) -> None:
    answer = here.ok("init", "--yes", "--json").json
    assert (answer["scope"], answer["settings"]) == ("local", str(client.files["local"]))
    for hook in client.hooks():
        assert hook == {
            "type": "command", "command": answer["python"], "timeout": TIMEOUT,
            "args": ["-I", "-S", "-c", CODE, str(client.hook.parent), "settings-local"],
        }  # fmt: skip
    python = Path(answer["python"])
    assert python.is_absolute()
    assert not (python.parents[1] / "pyvenv.cfg").exists()
    assert client.hook.read_bytes() == installer.packaged_hook().read_bytes()
    assert not here.gsd.exists()


def test_init_finds_settings_of_repository_user_or_client(repository: Here, client: Client) -> None:
    repository.where = repository.root / "deep" / "down"
    repository.where.mkdir(parents=True)
    repository.ok("init", "--yes")
    client.hooks("local")
    repository.where = client.home
    repository.ok("init", "--yes")
    client.hooks("user")
    repository.refused(3, "init", "--scope", "project", "--yes")
    repository.ok("init", "--yes", env={"CLAUDE_CONFIG_DIR": str(repository.root / "else")})
    assert "gsd_fsm_hook" in (repository.root / "else" / "settings.json").read_text()


@pytest.mark.parametrize(
    ("bom", "newline", "indent", "end"),
    [("\ufeff", "\r\n", "    ", "\r\n"), ("", "\n", "\t", "\n\n"), ("\ufeff", "\n", "", "")],
)
def test_init_keeps_the_bytes_and_the_style_of_other_settings(
    here: Here, client: Client, *, bom: str, newline: str, indent: str, end: str
) -> None:
    text = bom + json.dumps(SETTINGS, indent=indent, ensure_ascii=False) + end.replace("\r", "")
    path = client.write(text.replace("\n", newline).encode())
    here.ok("init", "--yes")
    written = path.read_bytes().decode()
    assert written.endswith("}" + end)
    assert written.count("\n") == written.count(newline)
    lines = iter(written.split(newline))
    # Every old line is there, in order; a comma may follow the last one of a list.
    for old in text.split("\n"):
        assert any(new.replace(",", "") == old.replace(",", "") for new in lines), old
    client.hooks()


def test_init_again_changes_nothing(here: Here, client: Client) -> None:
    client.write(SETTINGS)
    here.ok("init", "--status-line", "--yes")
    before = client.all_files()
    assert "Already installed" in here.ok("init").out
    assert here.ok("init", "--status-line", "--json").json["changed"] is False
    assert client.all_files() == before


def test_init_replaces_older_entries_and_removes_duplicates(here: Here, client: Client) -> None:
    old = {"type": "command", "command": "/old/python", "args": ["/old/gsd_fsm_hook.py"]}
    line = {"type": "command", "command": "python3 ~/gsd_fsm_hook.py"}
    stop, tool = [{"hooks": [FOREIGN, old]}, {"hooks": [line]}], [{"matcher": "*", "hooks": [old]}]
    client.write({"hooks": {"Stop": stop, "PostToolUse": tool}})
    here.ok("init", "--yes")
    hooks = client.read()["hooks"]
    assert "PostToolUse" not in hooks
    assert len(hooks["Stop"]) == 1
    assert hooks["Stop"][0]["hooks"][0] == FOREIGN
    assert len(client.hooks()) == len(EVENTS)


def test_init_does_not_register_a_hook_that_cannot_run(here: Here, client: Client) -> None:
    broken = here.root / "gsd_fsm_hook.py"
    broken.write_text("def broken(\n")
    here.patch.setattr(installer, "packaged_hook", lambda: broken)
    error = here.refused(6, "init", "--yes").err
    assert "cannot run the hook: exit code 1: SyntaxError" in error
    assert not client.files["local"].exists()


def test_init_raises_the_cap_of_the_client_only_on_request(here: Here, client: Client) -> None:
    client.write({"env": {"A": "b"}})
    here.ok("init", "--yes")
    assert client.read()["env"] == {"A": "b"}
    here.ok("init", "--raise-cap", "30", "--yes")
    assert client.read()["env"] == {"A": "b", CAP: "30"}
    here.refused(2, "init", "--raise-cap", "8", "--yes")


def test_installed_command_runs_as_the_client_starts_it(here: Here, client: Client) -> None:
    assert Project(here.root).ok("init", "--yes", "--json").json["changed"] is True
    compiled = (client.hook.parent / "__pycache__").iterdir()
    parts = sorted(path.name.split("_")[3:4] for path in compiled)
    assert parts == [[], ["engine"], ["rare"]]
    assert run_entry(client.hooks()[0], here.root) == (0, b"", b"")


# settings files of every kind


def test_init_and_uninstall_refuse_a_file_that_is_not_settings(here: Here, client: Client) -> None:
    for raw, place in (
        (b'{"a": 1} // done', "line 1, column 10"),
        (b'{"a":\n"\xff"}', "line 2: not UTF-8"),
        (b"[]", "line 1, column 1: the file is not an object"),
        (b'{"hooks": []}', "line 1, column 11: hooks is not an object"),
        (b'{"hooks": {"Stop": {}}}', "line 1, column 20: hooks.Stop is not a list"),
        (b'{"env": ["A"]}', "line 1, column 9: env is not an object"),
    ):
        path = client.write(raw)
        for command in ("init", "uninstall"):
            error = here.refused(2, command, "--yes").err
            assert (f"{path}: " in error, place in error) == (True, True), error
        assert path.read_bytes() == raw
    assert not client.data.exists()


def test_init_and_uninstall_handle_a_megabyte_of_settings(here: Here, client: Client) -> None:
    path = client.write({"permissions": {"allow": [f"Bash(command {n}:*)" for n in range(36_000)]}})
    before = path.read_bytes()
    here.ok("init", "--yes")
    client.hooks()
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == before


def test_init_and_uninstall_follow_a_link_and_keep_it(here: Here, client: Client) -> None:
    target = here.root / "claude.json"
    target.write_text('{"a": 1}\n')
    path = client.files["user"]
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    here.ok("init", "--scope", "user", "--yes")
    assert path.is_symlink()
    assert "gsd_fsm_hook" in target.read_text()
    here.ok("uninstall", "--yes")
    assert (path.is_symlink(), target.read_text()) == (True, '{"a": 1}\n')
    target.unlink()
    assert "broken link" in here.refused(2, "init", "--scope", "user", "--yes").err


def test_init_gives_new_files_the_mode_of_the_umask(here: Here, client: Client) -> None:
    kept = client.write({"a": 1}, "user")
    kept.chmod(0o640)
    before = os.umask(0o002)
    try:
        here.ok("init", "--scope", "user", "--yes")
        here.ok("init", "--yes")
        assert os.umask(0o002) == 0o002
    finally:
        os.umask(before)
    paths = (client.files["local"], client.hook, kept)
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o664, 0o600, 0o640]


def test_init_refuses_settings_that_it_cannot_replace(here: Here, client: Client) -> None:
    path = client.write({})
    path.chmod(0o444)
    before = listing(here.root)
    assert "is read-only" in here.refused(6, "init", "--yes").err
    assert listing(here.root) == before
    path.unlink()
    path.mkdir()
    assert "not a regular file" in here.refused(2, "init", "--yes").err
    path.rmdir()
    path.parent.rmdir()
    path.parent.write_text("mine")
    assert "cannot be written" in here.refused(6, "init", "--yes").err


def test_init_does_not_overwrite_a_change_made_in_the_meantime(here: Here, client: Client) -> None:
    path = client.write({"a": 1})
    warm = installer.warm

    def slow(python: str, directory: Path) -> None:
        path.write_text('{"a": 2}')
        warm(python, directory)

    here.patch.setattr(installer, "warm", slow)
    assert "in the meantime" in here.refused(6, "init", "--yes").err
    here.ok("uninstall", "--yes")
    assert path.read_text() == '{"a": 2}'


@pytest.mark.parametrize("raw", [ODD, b"{\n}\n", b' {"env": {"%s":  20}}' % CAP.encode()])
def test_uninstall_restores_the_bytes_before_init(here: Here, client: Client, raw: bytes) -> None:
    path = client.write(raw)
    here.ok("init", "--status-line", "--yes")
    link = here.root / "python"
    link.symlink_to(client.hooks()[0]["command"])
    here.ok("init", "--python", str(link), "--yes")
    for cap in ("9", "12"):
        here.ok("init", "--raise-cap", cap, "--yes")
    assert path.read_bytes() != raw
    here.ok("uninstall", "--yes")
    assert path.read_bytes() == raw
    assert not client.data.exists()


def test_uninstall_removes_what_init_created(here: Here, client: Client) -> None:
    before = client.all_files()
    here.ok("init", "--yes")
    here.ok("uninstall", "--yes")
    assert client.all_files() == before
    assert not (here.root / ".claude").exists()
    assert not client.data.exists()
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


@pytest.mark.parametrize("by_hand", ["", "hooks", "statusLine"])
def test_uninstall_keeps_a_created_file_in_use(here: Here, client: Client, by_hand: str) -> None:
    here.ok("init", "--status-line", "--yes")
    document = client.read()
    document.pop(by_hand, None)
    client.write({**document, "model": "opus"})
    here.ok("uninstall", "--yes")
    assert client.read() == {"model": "opus"}


def test_uninstall_restores_the_cap_unless_it_was_set_since(here: Here, client: Client) -> None:
    raised = ("--raise-cap", "30")
    for options, since in (((), None), (raised, None), (raised, "40")):
        client.write({"env": {CAP: "12"}})
        here.ok("init", *options, "--yes")
        document = client.read()
        document["env"][CAP] = since or document["env"][CAP]
        client.write({**document, "more": 1})
        here.ok("uninstall", "--yes")
        assert client.read() == {"env": {CAP: since or "12"}, "more": 1}


def test_entry_of_removed_hook_exits_0_with_a_hint(here: Here, client: Client) -> None:
    here.ok("init", "--yes")
    hook = client.hooks()[0]
    here.root.joinpath(".claude").rename(here.root / "moved")
    here.ok("uninstall", "--all", "--yes")
    assert not client.data.exists()
    code, output, error = run_entry(hook, here.root)
    assert (code, output, error.count(b"\n")) == (0, b"", 1)
    assert b"Run: gsd-fsm init" in error


def test_uninstall_asks_first_keeps_journals_and_names_loops_without_a_hook(here: Here) -> None:
    loop = here.start("goal", "g")
    here.ok("init", "--yes")
    before, journal = listing(here.root), listing(here.gsd)
    assert "--yes" in here.refused(2, "uninstall", stdin=b"y\n").err
    assert listing(here.root) == before
    here.ok("init", "--scope", "user", "--yes")
    assert here.ok("uninstall", "--scope", "user", "--yes", "--json").json["unheld"] == []
    notice = f"Loop {loop} is running without a hook. To pause it, run: gsd-fsm pause"
    assert notice in here.ok("uninstall", "--yes").out
    assert listing(here.gsd) == journal
    for change in (lambda: here.ok("pause"), lambda: here.journal.write_bytes(b"broken\n")):
        here.ok("init", "--yes")
        change()
        assert here.ok("uninstall", "--yes", "--json").json["unheld"] == []


def test_uninstall_removes_the_hook_with_its_last_settings(here: Here, client: Client) -> None:
    other = here.root.parent / "other"
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
    (other / ".claude" / "settings.local.json").unlink()  # its record does not count any more
    assert len(here.ok("uninstall", "--all", "--yes", "--json").json["removed"]) == 2
    assert not (other / ".claude").exists()
    assert not client.data.exists()


RULES = [*rules()[:2], "WebFetch"]
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
            "permissions": st.fixed_dictionaries(
                {}, optional={"allow": st.lists(st.sampled_from(RULES), max_size=3)}
            ),
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
    allow=st.booleans(),
)
def test_any_settings_survive_init_and_uninstall(
    tmp_path: Path, *, document: dict, layout: dict, cap: str | None, edge: str, line: bool,
    allow: bool,
) -> None:  # fmt: skip
    raw = (edge + json.dumps(document, **layout) + edge).encode("utf-8", "surrogatepass")
    parts = {"line": line, "allow": allow}
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    try:
        change, record = installer.plan_install("project", str(tmp_path), PYTHON, cap, **parts)
    except UsageError:
        assert b"\xed" in raw  # half a character outside of JSON's escapes
        return
    remember(record)
    write_change(change)
    written = json.loads(path.read_bytes())
    assert sorted(found.event for found in ours(written)) == sorted(EVENTS)
    assert not allow or {*rules()} <= {*written["permissions"]["allow"]}
    again, same = installer.plan_install("project", str(tmp_path), PYTHON, cap, **parts)
    assert (again.before, same) == (again.after, record)
    # Others may have edited the file since.
    path.write_bytes(path.read_bytes() + b"\n")
    installer.remove(installer.plan_removal(path))
    assert path.read_bytes() == raw + b"\n"
    if allow:
        return  # without the record, rules belong to the user
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
