from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.verify.report import markdown
from gsd_fsm.verify.reported_gaps import MAX_GAPS, ReportedGap, read_gaps
from gsd_fsm.verify.strategy import STRATEGIES

AGENTS = """\
# Verification

The `<gaps>` below were found. An unclosed <gaps> in a sentence means nothing.

```xml
<gaps>
  <gap type="orphan" id="x-1">
    <file>src/Menu.tsx</file>
    <description>Never imported &amp; never used</description>
    <evidence>grep found
no match for &lt;Menu&gt;</evidence>
  </gap>
  <!-- <gap type="nonsense">not one</gap>
  -->
  <gap type="broken_link" from="a.md" to="b.md"/>
</gaps>
```

<gaps phase="1"><gap type='missing-export' file="src/x.ts">No <b>export</b> of x</gap></gaps>
<gaps></gaps>
<gaps/>
"""


def test_gaps_of_an_agent_are_read() -> None:
    assert read_gaps(AGENTS, "V.md") == [
        ReportedGap(
            *(7, "x-1", "orphan", "src/Menu.tsx", "Never imported & never used"),
            "grep found\nno match for <Menu>",
        ),
        ReportedGap(15, "", "broken_link", "a.md", "a.md → b.md", ""),
        ReportedGap(19, "", "missing_export", "src/x.ts", "No <b>export</b> of x", ""),
    ]


def test_gaps_accept_crlf_byte_order_mark_cdata_and_quotes_in_attributes() -> None:
    text = "\ufeff<gaps>\r\n<gap><description><![CDATA[a < b]]></description></gap>\r\n</gaps>\r\n"
    assert read_gaps(text, "V.md") == [ReportedGap(2, "", "other", "", "a < b", "")]
    text = """<gaps>\n<gap type="stub" file='a "b" > c.py'>d</gap></gaps>"""
    assert read_gaps(text, "V.md")[0].file == 'a "b" > c.py'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n<gaps>\n<gap type='stub'>x</gap>", "V.md:3: <gaps> has no </gaps>"),
        ("<gaps>\n\n<gap type='stub'>x\n</gaps>", "V.md:3: <gap> has no </gap>"),
        ("<gaps>\n<gap>x\n<gap>y</gap>\n</gaps>", "V.md:2: <gap> has no </gap>"),
        ("<gaps>\n<gap type='stub>x</gap>\n</gaps>", "V.md:2: <gap> cannot be read: "),
        ("<gaps>\n<gap type='stub'> </gap>\n</gaps>", "V.md:2: <gap> has no description"),
        ("<gaps>\n<gap type='hole'>x</gap></gaps>", "V.md:2: unknown kind of gap: 'hole'"),
    ],
)
def test_malformed_gap_is_reported_with_its_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        read_gaps(text, "V.md")
    assert "hole" not in text or all(kind in error.value.hint for kind in STRATEGIES)


def test_more_than_200_gaps_are_rejected() -> None:
    one = "<gap type='stub'>x</gap>"
    assert len(read_gaps(f"<gaps>{one * MAX_GAPS}</gaps>", "V.md")) == MAX_GAPS
    with pytest.raises(UsageError, match="more than 200 gaps"):
        read_gaps(f"<gaps>{one * (MAX_GAPS + 1)}</gaps>", "V.md")


def outcome(text: str) -> str:
    """Return the error message, or "" if the text was read."""
    try:
        found = read_gaps(text, "V.md")
    except UsageError as error:
        return error.message
    assert all(gap.description for gap in found)
    return ""


@pytest.mark.parametrize(
    "part", ["<gaps></gaps>\n", "<gaps \n", "<gaps><!--\n", "<gaps><gap \n", "<gaps>", "<gaps>\n<"]
)
def test_hostile_text_is_read_in_linear_time(part: str) -> None:
    assert outcome(part * (1_000_000 // len(part)))[:7] in ("", "V.md:1:")


@given(st.text(alphabet=st.sampled_from("<>/\"'= \ngapstypefi-!&;`"), max_size=200))
def test_any_text_is_read_or_rejected_with_a_line(text: str) -> None:
    for whole in (text, f"<gaps>{text}</gaps>", f"<gaps><gap type='stub'>{text}</gap></gaps>"):
        assert outcome(whole)[:5] in ("", "V.md:")


TEXTS = st.text(min_size=1, max_size=60).filter(lambda text: display(text, lines=True).strip())


@given(st.lists(st.tuples(st.sampled_from(sorted(STRATEGIES)), TEXTS, TEXTS, TEXTS), max_size=4))
def test_gaps_of_our_report_are_read_back(rows: list[tuple[str, str, str, str]]) -> None:
    gaps = [
        {"id": f"G{number}", "kind": kind, "file": file, "description": what, "evidence": why}
        for number, (kind, file, what, why) in enumerate(rows, 1)
    ]
    manual = [{"task": "T01", "text": row[1]} for row in rows]
    about = {"loop": "lp-1", "phase": 1, "round": 2, "max_rounds": 20, "status": "gaps_found"}
    text = markdown({**about, "checks": [], "gaps": gaps, "manual": manual}, None)
    assert [gap._replace(line=0) for gap in read_gaps(text, "V.md")] == [
        ReportedGap(0, f"G{number}", kind, *(display(text, lines=True).strip() for text in texts))
        for number, (kind, *texts) in enumerate(rows, 1)
    ]
