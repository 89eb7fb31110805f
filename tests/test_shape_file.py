from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.shape_file import Shape, read_shape


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "SHAPE.md"


def shape(file: Path, text: str) -> Shape:
    file.write_text(text, "utf-8")
    return read_shape(file)


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
- Users can log in: `npm test -- login`
- `npm run lint`
- The page looks right on a phone

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
    assert found.notes == ()
    assert found.digest == hashlib.sha256(LISTS.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    "title",
    ["Criteria", "SUCCESS CRITERIA:", "2. Acceptance criteria", "**criteria[]**", "✅ Done when",
     "Implementation Criteria", "Criteria (boolean)", "Criteria Details", "acceptanceCriteria"],
)  # fmt: skip
def test_a_heading_of_criteria_may_be_spelled_in_many_ways(file: Path, title: str) -> None:
    assert shape(file, f"#### {title} ##\n- a\n").criteria == ("a",)


@pytest.mark.parametrize(
    "title",
    ["Must Not", "mustNot", "mustNot[]", "Must-Nots", "MUST NOT (Failure Conditions)", "must_not",
     "Must-NOT Constraints", "Constraints (Must NOT)", "Non-goals", "We must never", "Don'ts"],
)  # fmt: skip
def test_a_heading_of_must_nots_may_be_spelled_in_many_ways(file: Path, title: str) -> None:
    found = shape(file, f"# {title}\n- a\n\n# Criteria\n- b\n")
    assert (found.must_not, found.criteria) == (("a",), ("b",))


@pytest.mark.parametrize(
    "title",
    ["Verification", "verification{}", "Verify", "Checks", "Verification Plan", "How to verify",
     "3.1 Verification Commands", "Verification — how each is proved"],
)  # fmt: skip
def test_a_heading_of_verification_may_be_spelled_in_many_ways(file: Path, title: str) -> None:
    assert shape(file, f"### {title}\n- all: `make all`\n").checks == (("all", "make all"),)


@pytest.mark.parametrize(
    "title", ["Email verification for users", "Entry criteria", "Checkpoints", "Must have", "Goals"]
)
def test_other_headings_begin_nothing(file: Path, title: str) -> None:
    assert shape(file, f"# {title}\n- x\n# Criteria\n- a\n").criteria == ("a",)


def test_headings_may_be_underlined_and_labels_may_stand_for_them(file: Path) -> None:
    text = """\
Success Criteria
================
- a

Loop
====
mustNot:
- b
**Verification:**
- c: `make c`
**Risks**
- d
Must NOT: e
"""
    found = shape(file, text)
    assert (found.criteria, found.must_not) == (("a",), ("b", "e"))
    assert found.checks == (("c", "make c"),)


def test_items_that_are_labels_hold_the_items_below_them(file: Path) -> None:
    found = shape(file, "## Plan\n- **Criteria**\n  - a\n  - b\n- **Must not:**\n  - c\n- d\n")
    assert (found.criteria, found.must_not) == (("a", "b"), ("c",))


def test_a_section_goes_on_under_smaller_headings_but_not_under_asides(file: Path) -> None:
    text = "## Criteria\n- a\n### Fast\n- b\n### Notes\n- c\n### Safe\n- d\n## Else\n- e\n"
    assert shape(file, text).criteria == ("a", "b", "d")


def test_a_section_without_a_list_is_read_as_text(file: Path) -> None:
    text = "## Criteria\n\nAll pages load,\nalso old ones.\n\n## Verification\n\nRun `make all`.\n"
    found = shape(file, text)
    assert (found.criteria, found.checks) == (
        ("All pages load, also old ones.",),
        (("make all", "make all"),),
    )


def test_constraints_are_must_nots_only_if_they_forbid_something(file: Path) -> None:
    text = (
        "# Constraints\n- Python 3.10\n- Must not call the network\n- Never log\n# Criteria\n- a\n"
    )
    assert shape(file, text).must_not == ("Must not call the network", "Never log")


def test_what_an_item_says_below_itself_belongs_to_it(file: Path) -> None:
    text = """\
## Criteria
1. Tests pass
   - Verify: `npm test`
   - Why: they must
2. Docs are built

   ```bash
   cd docs
   make html
   ```
3. Pages load
   - on phones
   - on desks
"""
    found = shape(file, text)
    assert found.checks == (("Tests pass", "npm test"), ("Docs are built", "cd docs && make html"))
    assert found.criteria == ("Pages load", "on phones", "on desks")


def test_verification_of_a_criterion_makes_it_a_check_however_it_is_named(file: Path) -> None:
    text = """\
## Verification
- Verify that *tests* pass.: `make test`
- Speed: `make bench`
- `make docs` → Docs are built
- Criterion 4: `make four`
- Tests pass: `make e2e`
- Tests pass: `make test`
- Docs are built

## Criteria
- Tests pass
- Speed: p95 below 100 ms
- Docs are built
- The fourth
"""
    found = shape(file, text)
    assert found.criteria == ()
    assert found.checks == (
        ("Tests pass", "make test && make e2e"),
        ("Speed: p95 below 100 ms", "make bench"),
        ("Docs are built", "make docs"),
        ("The fourth", "make four"),
    )


def test_nothing_is_taken_from_comments_quotes_of_code_and_other_fences(file: Path) -> None:
    text = """\
## Criteria
<!-- - not this
- nor this -->
> - a
```python
- b
```
## Elsewhere
```bash
rm -rf /
```
```yaml
name: x
```
~~~markdown
## Criteria
- c
```yaml
criteria: [d]
```
~~~
"""
    found = shape(file, text)
    assert (found.criteria, found.checks) == (("a",), ())


def test_empty_and_unfilled_entries_are_not_taken(file: Path) -> None:
    text = "## Criteria\n- a\n- [Criterion 1 — Boolean]\n- TBD\n-\n## Must NOT\n- None\n- n/a.\n"
    found = shape(file, text)
    assert (found.criteria, found.must_not) == (("a",), ())
    assert found.notes == ("line 3: [Criterion 1 — Boolean] is a placeholder, and not taken",)


WORDS = st.lists(
    st.sampled_from(("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "omega")),
    min_size=2,
    max_size=5,
).map(" ".join)
TEXTS = st.lists(WORDS, min_size=1, max_size=6, unique=True)
BULLETS = st.sampled_from(("- ", "* ", "+ ", "1. ", "7) ", "- [ ] ", "- [x] ", "  - ", "□ "))


@given(TEXTS, TEXTS, st.integers(0, 6), BULLETS)
def test_whatever_is_listed_is_read_back(
    wanted: list[str], forbidden: list[str], proved: int, bullet: str
) -> None:
    checks = [(name, f"make step{n}") for n, name in enumerate(wanted[:proved])]
    lines = [
        "# Criteria", *(bullet + text for text in wanted),
        "## Must NOT", *(bullet + text for text in forbidden),
        "## Checks", *(f"{bullet}{name}: `{command}`" for name, command in checks),
    ]  # fmt: skip
    with TemporaryDirectory() as directory:
        file = Path(directory) / "SHAPE.md"
        file.write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
        found = read_shape(file)
    assert found[:3] == (tuple(wanted[proved:]), tuple(checks), tuple(forbidden))


def test_a_text_without_criteria_is_refused_with_an_example(file: Path) -> None:
    with pytest.raises(UsageError, match="neither criteria nor verification") as refusal:
        shape(file, "# Shape\n\n## Must NOT\n- a\n")
    assert "## Success Criteria" in refusal.value.hint
