import os
from hashlib import sha256

import pytest

from gsd_fsm.protection.environment import (
    END_BYTES,
    WHOLE_BYTES,
    Program,
    as_frozen,
    differing,
    digests,
    relevant,
    resolve,
)

RELEVANT = [
    "PATH",
    "HOME",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "GIT_DIR",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_VALUE_0",
    "GIT_INDEX_FILE",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONPYCACHEPREFIX",
    "NODE_OPTIONS",
    "NODE_PATH",
    "npm_config_script_shell",
    "NPM_CONFIG_SCRIPT_SHELL",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASH_FUNC_pytest%%",
    "CDPATH",
    "IFS",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "CLASSPATH",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "CARGO_TARGET_DIR",
    "CARGO",
    "TOXENV",
    "TOX_OVERRIDE",
    "NOXSESSION",
    "COVERAGE_PROCESS_START",
    "JEST_JUNIT_OUTPUT",
    "VITEST",
    "VITEST_MODE",
    "MOCHA_OPTIONS",
    "TS_NODE_PROJECT",
    "CC",
    "CFLAGS",
    "VIRTUAL_ENV",
    "CI",
]
IRRELEVANT = [
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "COLUMNS",
    "EDITOR",
    "PAGER",
    "TMPDIR",
    "USER",
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "GSD_FSM_CHECK",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_TERMINAL_PROMPT",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_PAGER",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PYTHONHASHSEED",
    "PYTEST_CURRENT_TEST",
    "PYTEST_XDIST_WORKER",
    "PYTEST_XDIST_TESTRUNUID",
    "PYTEST_VERSION",
    "CARGO_TERM_COLOR",
    "npm_config_user_agent",
    "npm_lifecycle_event",
    "CIRCLE",
    "PATHS",
    "MY_PATH",
    "SSH_AUTH_SOCK",
    "ENVIRONMENT",
]


def test_relevant_keeps_variables_that_can_change_a_result():
    environment = dict.fromkeys((*RELEVANT, *IRRELEVANT), "x")
    assert [*relevant(environment)] == RELEVANT


def test_digests_hold_no_value():
    found = digests({"PATH": "/secret/place", "NODE_OPTIONS": "\udc80", "TERM": "xterm"})
    assert {name: len(digest) for name, digest in found.items()} == {"PATH": 16, "NODE_OPTIONS": 16}
    assert "secret" not in repr(found)


def test_differing_names_added_changed_and_removed_variables():
    frozen = digests({"PATH": "/bin", "CC": "gcc", "CI": "1", "TERM": "a"})
    assert differing(frozen, {"PATH": "/bin", "CC": "gcc", "CI": "1", "TERM": "b"}) == []
    changed = {"PATH": "/fake:/bin", "CC": "gcc", "MAKEFLAGS": "-n", "EDITOR": "vi"}
    assert differing(frozen, changed) == ["CI", "MAKEFLAGS", "PATH"]


def test_as_frozen_resets_relevant_variables_only():
    environment = {"PATH": "/fake", "MAKEFLAGS": "-n", "TERM": "xterm", "LANG": "C"}
    values = {"PATH": "/bin", "LANG": "C", "CI": "1", "TERM": "old"}
    frozen = as_frozen(environment, values)
    assert frozen == {"PATH": "/bin", "LANG": "C", "CI": "1", "TERM": "xterm"}
    assert differing(digests(values), frozen) == []


@pytest.fixture
def programs(tmp_path):
    for place, content in {
        "one/tool": b"1",
        "two/tool": b"2",
        "two/other": b"3",
        "run.sh": b"4",
    }.items():
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755)
    (tmp_path / "one" / "other").write_bytes(b"not executable")
    (tmp_path / "one" / "folder").mkdir()
    return tmp_path


def short(content):
    return sha256(content).hexdigest()[:16]


def test_resolve_finds_programs_as_a_shell_does(programs):
    path = os.pathsep.join(["missing", str(programs / "one"), "two"])
    names = [
        "tool",
        "other",
        "folder",
        "./run.sh",
        "two/tool",
        "absent",
        "tool",
        "",
        "a\0b",
        "x" * 9999,
    ]
    assert resolve(names, programs, {"PATH": path}) == [
        Program("tool", str(programs / "one" / "tool"), short(b"1")),
        Program("other", str(programs / "two" / "other"), short(b"3")),
        Program("./run.sh", str(programs / "run.sh"), short(b"4")),
        Program("two/tool", str(programs / "two" / "tool"), short(b"2")),
    ]


@pytest.mark.parametrize(
    ("path", "found"), [("", 1), ("/nowhere" + os.pathsep, 1), ("/nowhere", 0)]
)
def test_resolve_takes_an_empty_entry_for_the_directory(programs, path, found):
    assert len(resolve(["run.sh"], programs, {"PATH": path})) == found


def test_resolve_digests_both_ends_and_the_size_of_a_large_program(programs):
    def digest(content):
        (programs / "run.sh").write_bytes(content)
        return resolve(["./run.sh"], programs, {})[0].digest

    whole, large = b"a" * WHOLE_BYTES, b"a" * (WHOLE_BYTES + 1)
    assert digest(whole) == short(whole)
    changed = [b"b" + large[1:], large[:-1] + b"b", large + b"a"]
    assert len({*map(digest, [large, *changed])}) == 4
    middle = large[: END_BYTES + 5] + b"b" + large[END_BYTES + 6 :]
    assert digest(middle) == digest(large)
