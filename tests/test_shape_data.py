from __future__ import annotations

import json
from pathlib import Path

import pytest

from gsd_fsm.core.errors import UsageError
from tests.test_shape_file import file, shape

__all__ = ["file"]


def test_tables_say_how_each_criterion_is_proved(file: Path) -> None:
    text = """\
### Implementation Criteria

criteria:
- Users can log in
- It is fast
- It looks right

### Verification Plan

| # | Criterion | Verification Type | Command/Method |
|---|-----------|------------------|----------------|
| 1 | Users can log in | execution output | `npm test \\| tee log` |
| 2 | It is fast | measurement | Response time < 100ms |
| 3 | It looks right | observation | `curl -w "%{time_total}" x` < 0.1s |
| 4 | Nobody is locked out | execution output | pytest -k "locked or out" |
"""
    found = shape(file, text)
    assert found.checks == (
        ("Users can log in", "npm test | tee log"),
        ("Nobody is locked out", 'pytest -k "locked or out"'),
    )
    assert found.criteria == ("It is fast", "It looks right")
    assert len(found.notes) == 1
    assert found.notes[0].startswith("line 14: 'curl -w \"%{time_total}\" x' may succeed without")


def test_a_table_of_criteria_may_hold_commands_and_one_of_must_nots_reasons(file: Path) -> None:
    text = """\
## Criteria
| Criterion | Command |
|---|---|
| Tests pass | `make test` |
| Docs read well | |
## Must NOT
- Scope: no new API
### Details
| Constraint | Consequence |
|:--|--:|
| Scope | breaks users |
| Secrets in logs | leaks |
"""
    found = shape(file, text)
    assert (found.checks, found.criteria) == ((("Tests pass", "make test"),), ("Docs read well",))
    assert found.must_not == ("Scope: no new API", "Secrets in logs")


FULL = {
    "criteria": ["Users can log in", "Tests pass", "Docs: are built"],
    "mustNot": ["Log tokens"],
    "verification": {"Tests pass": "make test", "Docs: are built": "Look at them"},
}
YAML = """\
criteria:
  - Users can log in
  - "Tests pass"
  - Docs: are built
must_not: [Log tokens]
verification:
  Tests pass: make test
  "Docs: are built": Look at them
"""


@pytest.mark.parametrize(
    "text",
    [
        f"---\nmode: present|autonomous\n{YAML}---\n# Shape\n",
        f"# Shape\n\n```yaml\n{YAML}```\n",
        f"# Shape\n\n```json\n{json.dumps(FULL, indent=2)}\n```\n",
        f"# Shape\n\n```json\n{json.dumps({'shape': FULL, 'mode': 'tool'})}\n```\n",
    ],
    ids=["front matter", "yaml", "json", "wrapped"],
)
def test_data_may_stand_in_the_front_matter_or_in_a_fence(file: Path, text: str) -> None:
    found = shape(file, text)
    assert found.criteria == ("Users can log in", "Docs: are built")
    assert found.checks == (("Tests pass", "make test"),)
    assert (found.must_not, found.notes) == (("Log tokens",), ())


def test_lists_and_mappings_may_stand_under_headings_without_keys(file: Path) -> None:
    text = """\
### Success Criteria
```json
["Empty state renders when data=[]", "All tests pass"]
```
### Must NOT (Failure Conditions)
```yaml
- Blank screen during load
```
### Verification Commands
```json
{
  "Empty state renders when data=[]": "grep 'empty-state\\\\|no-data' src/*.tsx",
  "All tests pass": "npm test"
}
```
"""
    found = shape(file, text)
    assert found.checks == (
        ("Empty state renders when data=[]", "grep 'empty-state\\|no-data' src/*.tsx"),
        ("All tests pass", "npm test"),
    )
    assert (found.criteria, found.must_not) == ((), ("Blank screen during load",))


def test_entries_may_be_described_by_members(file: Path) -> None:
    text = """\
```yaml
criteria:
  - name: Tests pass
    command: hatch run all
  - {id: C2, text: Docs are built, verification: observation}
verification:
  - lint: ruff check
    types: mypy --strict
  - name: smoke
    run: $ ./smoke
checks:
  all of it: [make one, make two]
  by hand:
```
"""
    found = shape(file, text)
    assert found.checks == (
        ("Tests pass", "hatch run all"),
        ("lint", "ruff check"),
        ("types", "mypy --strict"),
        ("smoke", "./smoke"),
        ("all of it", "make one && make two"),
    )
    assert found.criteria == ("Docs are built: observation", "by hand")


def test_data_that_is_only_an_example_is_not_taken(file: Path) -> None:
    text = """\
## Criteria
- a
## Verification
- b
```json
{"id": 1, "name": "x"}
```
```json
{"id": ..., }
```
## Mapping
```json
{"a": {"met": false, "verification": "execution output"}}
```
"""
    found = shape(file, text)
    assert (found.criteria, found.checks) == (("a", "b"), ())
    assert [note.partition(":")[0] for note in found.notes] == ["line 5", "line 9"]


def test_yaml_that_is_none_is_read_as_plain_lists(file: Path) -> None:
    text = '---\ncriteria:\n- "Save" is shown\nmustNot:\n- `eval`\n---\n- c\n'
    found = shape(file, text)
    assert (found.criteria, found.must_not) == (('"Save" is shown',), ("eval",))
    assert len(found.notes) == 1
    assert found.notes[0].startswith("line 3: not valid YAML")


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("---\ncriteria: [a]\ncriteria: [b]\n---\n", ":3: duplicate key 'criteria'"),
        ("---\ncriteria: &a [x]\nmustNot: *a\n---\n", ":3: YAML that is too deep, or has an alias"),
        (f"---\ncriteria: {'[' * 50}\n---\n", ":2: YAML that is too deep, or has an alias"),
        ("\n```yaml\ncriteria: true\n```\n", ":3: a list of texts is wanted, not true"),
        ("\n```yaml\ncriteria: 5\n```\n", ":3: a list of texts is wanted, not 5"),
        ("\n```yaml\ncriteria:\n- [a, b]\n```\n", ":4: a list in a list"),
        ("\n```yaml\ncriteria:\n- ? [a]\n  : b\n```\n", ":4: a key that is no text"),
        ('\n```json\n{"criteria": ["a",]}\n```\n', ":3: not valid JSON"),
        ('\n```json\n{"criteria": ["a"], "criteria": ["b"]}\n```\n', ":3: duplicate key 'criteria'"),
        ('\n```json\n{"criteria": [NaN]}\n```\n', ":3: NaN is no JSON value"),
        (f'\n```json\n{{"criteria": {"[" * 9_000}\n```\n', ":3: JSON that is too deep"),
        (f'\n```json\n{{"criteria": {"[" * 30}{"]" * 30}}}\n```\n', ":3: JSON that is too deep"),
        ('# Criteria\n```json\n["a"\n```\n', ":3: not valid JSON"),
        (f"---\ncriteria:\n{'- a' * 30_000}\n---\n", ":1: more than 64 KiB of YAML and JSON"),
        ("---\nverification:\n  a:\n    run: |\n      x\n      y\n---\n", ":4: a command over several"),
    ],
)  # fmt: skip
def test_data_that_is_meant_for_us_and_broken_is_refused_with_its_line(
    file: Path, text: str, refusal: str
) -> None:
    with pytest.raises(UsageError) as refused:
        shape(file, text)
    assert refusal in refused.value.message
