"""The values that each setting accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_fsm.config.keys import KEY_NAMED, KEYS, is_branch
from tests.support.lines import json_values
from tests.support.settings_files import DEFAULTS

NOT_LINES = ("", " ", "\t", 1, True, [], "a\nb", "a\rb", "a\0b", "a\x1b[2Jb", "a\u2028b",
             "a\u202eb", "a\x85b")  # fmt: skip
# settings, the values that they accept, and values that they reject
VALUES: tuple[tuple[tuple[str, ...], tuple[Any, ...], tuple[Any, ...]], ...] = (
    (("execute_max_retries", "verify_max_iterations", "max_iterations", "stuck_limit", "idle_limit",
      "max_tokens", "report_grace"),
     (0, 1, 1_000_000_000), (-1, True, False, 1.0, "1", [1], 1_000_000_001, float("nan"))),
    (("tdd_max_attempts", "check_timeout_seconds"), (1, 1_000_000_000), (0, -1, True, 1.0)),
    (("check_shell",), (sys.executable, str(Path("a b/é").absolute())),
     ("sh", "./sh", "", True, 1, ["/bin/sh"], "/bin/s\nh", "/" + "x" * 2_000)),
    (("check_reruns",), (0, 1, 100), (-1, True, 1.0, "1", 101)),
    (("budget_usd", "max_minutes"),
     (0, 2, 0.25, 1e9), (float("nan"), float("inf"), float("-inf"), -0.01, -1, True, "5")),
    (("auto_loop", "browser", "clean_checks", "commit", "checkpoints", "prove_tasks", "state_md",
      "strict_env"),
     (True, False), (1, 0, "true", [], "")),
    (("ci_lint", "ci_typecheck", "ci_test", "ci_build", "ci_e2e", "clean_setup"),
     (' npm run "a b" -- --fix\t&& echo é > $HOME ', "x" * 8_000),
     (*NOT_LINES, ["npm", "test"], "x" * 8_001)),
    (("deploy_target", "base_url", "counsel", "task_list"),
     ("http://é.example/?a=1", "x" * 2_000), (*NOT_LINES, "a\tb", "x" * 2_001)),
    (("mode",), ("interactive", "yolo"), ("fast", "YOLO", "", True, 1, [[]])),
    (("branching",), ("none", "milestone"), ("phase", "Milestone", "", True, 1, [], {})),
    (("branch_prefix",), ("gsd/", "", "gsd", "a/b/", "a.", "x" * 199),
     ("-", "--", " ", "/", "a//", "a b/", "..", "a..", ".", "a/.", "a.lock/", "a~", "x" * 200, 1)),
    (("mcps",), ([], ["postgres", "github"], ["x" * 200] * 100),
     ("github", 1, {}, [1], [""], [" "], [["a"]], ["a", True], ["a\nb"], ["x" * 201], ["x"] * 101)),
    (("prices",),
     ({}, {"m": {"input": 1, "output": 0.5}}, {"m-1": {"input": 0, "output": 1, "cache_read": 2}}),
     ([], {"m": 1}, {"m": {"input": 1}}, {"m": {"input": "1", "output": 1}}, {"a\nb": {}},
      {"m": {"input": 1, "output": -1}}, {"m": {"input": 1, "output": 1, "other": 1}})),
    (("views",), ([], ["state", "report"]), ("state", ["other"], [1])),
)  # fmt: skip
BAD_BRANCHES = (
    *("", " ", "-", "-x", "--force", "a b", "a\tb", "a\nb", "a\x7fb", "a\x1b[2Jb"),
    *("..", "a..b", ".", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "/a", "a/", "a//b", "/"),
    *("a~", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a@{b"),
)
# git reads these as something else, or they contain invisible characters
MISLEADING = ("@", "@{-1}", "HEAD", "a\0b", "a\u00a0b", "a\u200bb", "a\u202eb", "x" * 201)


def test_keys_have_valid_defaults_and_one_sentence_each() -> None:
    for key in KEYS:
        assert key.default is None or key.rule.accepts(key.default)
        assert not key.rule.accepts(None)
        assert key.description[0].isupper()
        assert key.description.endswith(".")
        assert key.description.count(".") - key.description.count(".md") == 1


def test_rule_of_every_key_accepts_valid_values_and_rejects_others() -> None:
    assert {name for names, _, _ in VALUES for name in names} | {"base_branch"} == set(DEFAULTS)
    for names, valid, invalid in VALUES:
        for name in names:
            accepts = KEY_NAMED[name].rule.accepts
            assert [value for value in valid if not accepts(value)] == []
            assert [value for value in invalid if accepts(value)] == []


def git_accepts(name: str) -> bool:
    command = ["git", "check-ref-format", "--branch", name]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_branch_name_accepts_what_git_accepts_and_does_not_misread() -> None:
    for name in ("master", "main", "origin/main", "gsd/v1.0.0", "é", "a@b", "x-"):
        assert is_branch(name)
        assert git_accepts(name)
    for name in BAD_BRANCHES + MISLEADING:
        assert not is_branch(name)
        assert name in MISLEADING or not git_accepts(name)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*"ax1-_./@{}~^:?*[\\ é", ".lock"]), max_size=8).map("".join))
def test_branch_name_that_is_accepted_is_valid_for_git(name: str) -> None:
    assert not is_branch(name) or git_accepts(name)


@given(json_values | st.floats())
def test_no_rule_or_refusal_raises_on_any_value(value: Any) -> None:
    for key in KEYS:
        assert type(key.rule.accepts(value)) is bool
        error = key.refusal("FILE:1", key.name, value)
        assert error.message.startswith(f"FILE:1: {key.name} must be {key.rule.words}, not ")


def test_refusal_of_a_huge_value_is_short() -> None:
    for value in (10**5_000, "k" * 60_000):
        assert len(KEY_NAMED["mode"].refusal("FILE", "mode", value).message) < 200
