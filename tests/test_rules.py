"""Every rule of the seed documents is proven by a test that exists."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DATA = tomllib.loads((ROOT / "tests" / "rules.toml").read_text("utf-8"))
RULES: list[dict[str, Any]] = DATA["rule"]
SECTIONS = {f"{document}, {name}" for document, names in DATA["seeds"].items() for name in names}


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of the test functions of a module; empty if there is no such file."""
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8") if file.is_file() else "")
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in functions if name.startswith("test_"))


def test_rule_has_text_seed_and_test() -> None:
    wrong = [
        row
        for row in RULES
        if not {"rule", "seed", "test"} <= row.keys() <= {"rule", "seed", "differs", "test"}
        or not row["rule"].endswith(".")
        or not row["test"]
    ]
    assert not wrong


def test_rule_names_tests_that_exist() -> None:
    wrong = [
        f"{row['rule']} -> {node}"
        for row in RULES
        for node in row["test"]
        if node.partition("::")[2] not in functions_of(node.partition("::")[0])
    ]
    assert not wrong, "no such test:\n" + "\n".join(wrong)


def test_rule_is_proven_without_a_real_client() -> None:
    wrong = [row["rule"] for row in RULES if all("/e2e/" in node for node in row["test"])]
    assert not wrong, "proven by e2e tests only:\n" + "\n".join(wrong)


def test_rule_names_known_sections_of_seed_documents() -> None:
    wrong = [
        f"{row['rule']} -> {seed}" for row in RULES for seed in row["seed"] if seed not in SECTIONS
    ]
    assert not wrong, "not in [seeds]:\n" + "\n".join(wrong)


def test_every_section_of_every_seed_document_has_a_rule() -> None:
    assert not SECTIONS - {seed for row in RULES for seed in row["seed"]}


def test_rules_have_no_duplicates() -> None:
    counts = Counter(" ".join(row["rule"].lower().split()) for row in RULES)
    assert not [rule for rule, count in counts.items() if count > 1]
