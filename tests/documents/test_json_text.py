"""Read JSON strictly, and edit it in place; bytes outside of the edit stay."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.documents import json_text
from gsd_fsm.documents.json_text import NotJson, append, drop, put, put_text, read_object
from tests.support.lines import json_layouts, json_values

objects = st.dictionaries(st.text(), json_values, max_size=5)
SPACED = '{\n\t"b" : 1,\n\n\t"a":{ "x": [1 ,2] , "y":{}}\n}\n'


def test_read_object_knows_the_lines_of_objects_and_keys() -> None:
    text = '{"a": [\n {"b": "{\\"x\\":",\n\n "c"\n: {}}],\n"d": 12345678901234567890}'
    found = read_object(text, "F")
    assert found == {"a": [{"b": '{"x":', "c": {}}], "d": 12345678901234567890.0}
    inner = found["a"][0]
    lines = (found.line, found.line_of("d"), inner.line, inner.line_of("c"), inner["c"].line)
    assert lines == (1, 6, 2, 4, 5)
    assert found.line_of("absent") == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n"b": 2, "a": 3}', "F:2: duplicate key: a"),
        ('{"a": 1, "\\u0061": 3}', "F:1: duplicate key: a"),
        ('{"a":\n' + "[" * 101, "F:2: nested more than 100 levels deep"),
        ('{"a":\n-Infinity}', "F:2: not valid JSON: -Infinity is not a JSON value"),
        ("[1]", "F:1: not a JSON object"),
        ('{"a": "\n"}', "F:1:8: not valid JSON: Invalid control character at"),
        ('{"a": 1}\n{', "F:2:1: not valid JSON: Extra data"),
        ('{"a": "\\"', "F:1:7: not valid JSON: Unterminated string starting at"),
        ("}" * 9, "F:1:1: not valid JSON: Expecting value"),
    ],
)
def test_read_object_refuses_other_text_with_file_and_line(text: str, problem: str) -> None:
    with pytest.raises(NotJson) as error:
        read_object(text, "F")
    assert error.value.message == problem


@given(value=objects, layout=json_layouts)
def test_read_object_reads_what_json_writes(value: dict, layout: dict) -> None:
    text = json.dumps(value, **layout)
    assert read_object(text, "F") == json.loads(
        text, parse_int=lambda it: float(it) if len(it) > 19 else int(it)
    )


def test_put_adds_a_member_after_the_last_in_its_style() -> None:
    assert put(SPACED, ("c",), {"d": [True]}) == (
        '{\n\t"b" : 1,\n\n\t"a":{ "x": [1 ,2] , "y":{}},\n\t"c": {\n\t\t"d": [\n\t\t\ttrue\n\t\t]\n\t}\n}\n'
    )
    assert append(SPACED, ("a", "x"), 3) == SPACED.replace("[1 ,2]", "[1 ,2, 3]")
    assert put('{"a":1}', ("b", "c"), "é") == '{"a":1, "b": {"c": "é"}}'


def test_put_writes_lines_into_an_empty_object_with_the_line_ends_of_the_text() -> None:
    assert put("{}\n", ("a",), [1]) == '{\n  "a": [\n    1\n  ]\n}\n'
    assert put(" { } ", ("a",), 1) == ' {\n   "a": 1\n } '
    text = '{\r\n    "a": {}\r\n}\r\n'
    assert put(put(text, ("a", "b"), {"c": 1}), ("d",), [1]) == (
        '{\r\n    "a": {\r\n        "b": {\r\n            "c": 1\r\n        }\r\n    },\r\n'
        '    "d": [\r\n        1\r\n    ]\r\n}\r\n'
    )


def test_drop_removes_the_part_and_its_comma() -> None:
    found = [drop("[1, 2, 3]", (at,)) for at in range(3)]
    assert found == ["[2, 3]", "[1, 3]", "[1, 2]"]
    assert drop('{ "a" : 1 }', ("a",)) == "{}"
    assert drop('{"a": 1}', ("b",)) == '{"a": 1}'


def test_put_text_replaces_a_value_by_the_given_text() -> None:
    assert put_text('{"a": "x" }', ("a",), "1.50e1") == '{"a": 1.50e1 }'
    assert put_text(" {} ", (), "{ }") == " { } "
    assert put_text("{}", ("a",), "1") == "{}"


def test_last_of_duplicate_keys_is_edited() -> None:
    text = '{"a": {"x": 1}, "a": {"y": 2}}'
    assert put(text, ("a", "z"), 3) == '{"a": {"x": 1}, "a": {"y": 2, "z": 3}}'
    assert json_text.find(text, ("a", "x")) is None
    assert drop(text, ("a",)) == '{"a": {"x": 1}}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{\n  "a": 1,\n}', "line 3, column 1"),
        ("", "line 1, column 1"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("{} {}", "line 1, column 4: text after the end"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_root_refuses_invalid_json_with_line_and_column(text: str, problem: str) -> None:
    with pytest.raises(NotJson, match=problem):
        json_text.root(text)


@given(document=objects, layout=json_layouts, key=st.text(), value=json_values)
def test_put_and_drop_act_like_a_dictionary_and_keep_other_bytes(document, layout, key, value):
    text = json.dumps(document, **layout)
    changed = put(text, (key,), value)
    assert list(json.loads(changed).items()) == list({**document, key: value}.items())
    assert json.loads(drop(changed, (key,))) == {k: v for k, v in document.items() if k != key}
    if document and key not in document:
        assert drop(changed, (key,)) == text


@given(items=st.lists(json_values, max_size=5), layout=json_layouts, value=json_values)
def test_drop_reverses_append(items: list, layout: dict, value: object) -> None:
    text = json.dumps({"list": items}, **layout)
    changed = append(text, ("list",), value)
    assert json.loads(changed) == {"list": [*items, value]}
    assert json.loads(drop(changed, ("list", len(items)))) == {"list": items}
    if items:
        assert drop(changed, ("list", len(items))) == text
