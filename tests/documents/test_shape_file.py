from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gsd_fsm.core.errors import UsageError
from gsd_fsm.documents.shape_file import HINT, Shape, read_shape


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "SHAPE.md"


def shape(file: Path, text: str) -> Shape:
    file.write_text(text, "utf-8")
    return read_shape(file)


def refusal(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_shape(file)
    assert refused.value.hint == HINT
    return refused.value.message


LISTS = """\
# Shape: Add email verification

## Relevant Aspects
- Data: stored for ever

## Success Criteria
Boolean, each of them:

- [ ] Users can log in
- [x] Wrong passwords are
  refused
* Tokens expire

## Must NOT
1. Store plain passwords
2) Log tokens

## Verification
+ Users can log in: `npm test -- login`
+ `npm run lint`
+ The page looks right on a phone

## Expert Decisions
- Use immutable events
"""


def test_lists_under_headings_are_criteria_must_nots_and_checks(file: Path) -> None:
    found = shape(file, LISTS)
    assert found.criteria == (
        "Wrong passwords are refused",
        "Tokens expire",
        "The page looks right on a phone",
    )
    assert found.checks == (
        ("Users can log in", "npm test -- login"),
        ("npm run lint", "npm run lint"),
    )
    assert found.must_not == ("Store plain passwords", "Log tokens")
    assert found.notes == ("not read: Relevant Aspects, Expert Decisions",)
    assert found.digest == hashlib.sha256(LISTS.encode()).hexdigest()[:16]


LABELS = """\
### Implementation Criteria
criteria:
- Users can log in
- It is fast
### Must-NOT Constraints
mustNot:
- Log tokens
### Verification Plan
| # | Criterion | Verification Type | Command/Method |
|--:|-----------|-------------------|:---------------|
| 1 | users can log in. | execution output | `npm test \\| tee log` |
| 2 | It is fast | measurement | `curl -w time x` < 0.1s |
| 3 | Nobody is locked out | execution output | pytest |
"""


def test_a_template_with_labels_and_a_plan_of_verification_is_read(file: Path) -> None:
    found = shape(file, LABELS)
    assert found.checks == (("Users can log in", "npm test | tee log"),)
    assert found.criteria == ("It is fast", "Nobody is locked out: execution output; pytest")
    assert found.must_not == ("Log tokens",)
    assert found.notes == (
        "line 12: 'curl -w time x' is not run: it may succeed without '< 0.1s'",
        "line 12: of 'It is fast' this is not taken: measurement; curl -w time x < 0.1s",
    )


FENCES = """\
### Implementation Criteria
```yaml
criteria:
  - "Login: users can log in"
  - 'Speed: p95 below 100 ms'
```
### Must-NOT Constraints
```yaml
mustNot:
  # of the API
  - "Scope: no new route"
```
### Criteria Details
| Criterion | Verification Type | Command/Method |
|-----------|-------------------|----------------|
| Login | execution output | run `npm test -- login` |
| Speed | measurement | by hand |
### Why These Constraints
| Constraint | Reason |
|---|---|
| Scope | breaks users |
"""


def test_a_template_with_fences_and_labels_in_a_table_is_read(file: Path) -> None:
    found = shape(file, FENCES)
    assert found.checks == (("Login: users can log in", "npm test -- login"),)
    assert found.criteria == ("Speed: p95 below 100 ms",)
    assert found.must_not == ("Scope: no new route",)
    assert found.notes == (
        "line 17: of 'Speed: p95 below 100 ms' this is not taken: measurement; by hand",
        "not read: Why These Constraints",
    )


TITLES = {
    "criteria": "Criteria|SUCCESS CRITERIA:|Acceptance criteria|✅ Done when|Criteria (boolean)"
    "|Criteria Details|acceptanceCriteria|Definition of Done — all of it|criteria[]",
    "must_not": "Must Not|mustNot|Must-NOT Constraints|must_not|Constraints (Must NOT)|Non-goals"
    "|What we must never do|Don'ts",
    "checks": "Verification|verification{}|Verify|Checks|Verification Commands|How to verify"
    "|Verification - how each is proved|Final Verification",
}


@pytest.mark.parametrize("section", TITLES)
def test_headings_and_labels_may_be_spelled_in_many_ways(file: Path, section: str) -> None:
    for title in TITLES[section].split("|"):
        for begin in (f"#### 3.1 {title} ##", f"**{title}**", f"{title.rstrip(':')}:"):
            found = shape(file, f"# Done when\nx\n# T\n{begin}\n- a: `make a`\n")
            got = found.must_not if section == "must_not" else found.checks
            assert len(got) == 1, begin


@pytest.mark.parametrize(
    "title", ["Shape: Add verification", "Email verification for users", "Entry criteria", "Goals"]
)
def test_other_headings_begin_nothing_and_are_told(file: Path, title: str) -> None:
    found = shape(file, f"# {title}\n- x\n# Criteria\n- a\n")
    assert (found.criteria, found.notes) == (("a",), (f"not read: {title}",))


@pytest.mark.parametrize(
    "frame", ["---\n{}---\n# T\n", "# T\n```yaml\n{}```\n", "# T\n```\n{}```\n", "# T\n{}"]
)
def test_labels_are_the_same_in_text_fences_and_front_matter(file: Path, frame: str) -> None:
    text = "mode: x\ncriteria:\n- \"a\"\n- b: c\ntags:\n- t\nmust_not:\n  - 'd'\nMust not: e\n"
    found = shape(file, frame.format(text))
    assert (found.criteria, found.must_not) == (("a", "b: c"), ("d", "e"))
    assert found.notes == ("not read: tags",)


def test_a_section_goes_on_under_smaller_headings_and_not_under_what_explains(file: Path) -> None:
    text = (
        "## Criteria\n- a\n### Fast\n- b\n### Notes\n- c\n### Safe\n**Old:**\n- d\n## Else\n- e\n"
    )
    found = shape(file, text)
    assert (found.criteria, found.notes) == (("a", "b", "d"), ("not read: Notes, Else",))


def test_a_section_without_a_list_is_read_as_text_and_text_beside_one_is_told(file: Path) -> None:
    text = (
        "# Done when\nIt holds:\n\nPages load,\nall.\n\n**You** log in.\n# Verify\nRun `make x`.\n"
    )
    found = shape(file, text + "# Must not\n- a\n\nSome say so.\n")
    assert found.criteria == ("Pages load, all.", "You log in.")
    assert (found.checks, found.must_not) == ((("make x", "make x"),), ("a",))
    assert found.notes == ("line 13: text beside a list is not read",)


BELOW = """\
## Criteria
1. Tests pass
   - Verify: `npm test`
   - `npm run e2e` passes
2. Docs are built

   ```bash
   make html
   ```
3. Pages load:
   - on phones,
     old ones too
   - on desks: `make desks`
"""


def test_what_stands_below_an_item_belongs_to_it(file: Path) -> None:
    assert shape(file, BELOW)[:2] == (
        (),
        (
            ("Tests pass", "npm test && npm run e2e"),
            ("Docs are built", "make html"),
            ("Pages load: on phones, old ones too; on desks", "make desks"),
        ),
    )


def test_a_verification_proves_the_criterion_of_its_name_or_of_its_label(file: Path) -> None:
    proofs = "# Checks\n- Verify that *tests* pass.: `make a`\n- Speed: `make b`\n- Size: `make c`\n- D\n"
    wanted = "# Criteria\n- Tests pass\n- Speed: fast\n- Size: < 1 MB\n- Size: > 1 KB\n- d\n"
    found = shape(file, proofs + wanted)
    assert found.criteria == ("Size: < 1 MB", "Size: > 1 KB", "d")
    assert found.checks == (("Tests pass", "make a"), ("Speed: fast", "make b"), ("Size", "make c"))


def test_a_table_names_its_entries_in_the_first_column_that_is_no_number(file: Path) -> None:
    text = "# {}\n| Id | Name | How |\n|---|---|---|\n| C1 | a `x|y` | by hand |\n| 2 | b | |\n"
    found = shape(file, text.format("Criteria") + text.format("Must not"))
    assert found.criteria == found.must_not == ("a x|y: by hand", "b")


def test_comments_are_left_out_and_other_fences_are_told(file: Path) -> None:
    text = "# Criteria\n<!-- - x\n- y -->\n- a <!-- b -->\n```py\n- c\n```\n# T\n```json\n{}\n```\n"
    found = shape(file, text + "~~~md\n- d\n~~~\n")
    assert found.criteria == ("a",)
    assert found.notes == tuple(
        f"line {n}: a fence of {it} is not read" for n, it in ((5, "py"), (9, "json"))
    )


def test_what_nobody_has_filled_in_is_told_and_notes_are_not_endless(file: Path) -> None:
    unfilled = ("[Criterion 1]", "<text>", "TBD", "None", "n/a.")
    found = shape(
        file, "# Criteria\n- a\n-\n# Must not\n" + "".join(f"- {it}\n" for it in unfilled)
    )
    assert (found.criteria, found.must_not) == (("a",), ())
    assert [note.split(" is a placeholder")[0][8:] for note in found.notes] == list(unfilled)
    notes = shape(file, "# T\n- x\n# Criteria\n- a\n" + "- [b]\n" * 900).notes
    assert len(notes) == 20
    assert notes[-2:] == ("882 more lines were passed over", "not read: T")
