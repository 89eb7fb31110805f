"""Every rule of the seed documents is proven by a test that exists."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
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
    """Return the names of the functions of a module; empty if there is no such file."""
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8") if file.is_file() else "")
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def problems(row: dict[str, Any]) -> Iterator[str]:
    if not {"rule", "seed", "test"} <= row.keys() <= {"rule", "seed", "differs", "test"}:
        yield "needs rule, seed and test, and may have differs"
        return
    if not row["rule"].endswith("."):
        yield "is not a sentence"
    if all("/e2e/" in node for node in row["test"]):
        yield "has no test that runs without a real client"
    for node in row["test"]:
        path, _, function = node.partition("::")
        if not function.startswith("test_") or function not in functions_of(path):
            yield f"no such test: {node}"
    yield from (f"not in [seeds]: {seed}" for seed in row["seed"] if seed not in SECTIONS)


def test_rule_names_known_sections_and_tests_that_exist() -> None:
    wrong = [f"{row.get('rule', row)} -> {problem}" for row in RULES for problem in problems(row)]
    assert not wrong, "\n".join(wrong)


def test_every_section_of_every_seed_document_has_a_rule() -> None:
    assert not SECTIONS - {seed for row in RULES for seed in row["seed"]}


def test_rules_have_no_duplicates() -> None:
    counts = Counter(" ".join(row["rule"].lower().split()) for row in RULES)
    assert not [rule for rule, count in counts.items() if count > 1]
