"""A JSON text is edited in place: what is not touched keeps its bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.documents.json_text import NotJson, append, drop, find, put, put_text, root
from tests.support.json_values import layouts, values

SPACED = '{\n\t"b" : 1,\n\n\t"a":{ "x": [1 ,2] , "y":{}}\n}\n'


def test_a_new_member_stands_behind_the_last_one_in_its_style() -> None:
    assert put(SPACED, ("c",), {"d": [True]}) == (
        '{\n\t"b" : 1,\n\n\t"a":{ "x": [1 ,2] , "y":{}},\n\t"c": {\n\t\t"d": [\n\t\t\ttrue\n\t\t]\n\t}\n}\n'
    )
    assert append(SPACED, ("a", "x"), 3) == SPACED.replace("[1 ,2]", "[1 ,2, 3]")
    assert put('{"a":1}', ("b", "c"), "é") == '{"a":1, "b": {"c": "é"}}'


def test_an_empty_text_is_laid_out_in_lines() -> None:
    assert put("{}\n", ("a",), [1]) == '{\n  "a": [\n    1\n  ]\n}\n'
    assert put(" { } ", ("a",), 1) == ' {\n   "a": 1\n } '


def test_line_ends_are_those_of_the_text() -> None:
    text = '{\r\n    "a": {}\r\n}\r\n'
    changed = put(put(text, ("a", "b"), {"c": 1}), ("d",), [1])
    assert changed == (
        '{\r\n    "a": {\r\n        "b": {\r\n            "c": 1\r\n        }\r\n    },\r\n'
        '    "d": [\r\n        1\r\n    ]\r\n}\r\n'
    )


def test_what_is_dropped_takes_its_comma_with_it() -> None:
    assert drop("[1, 2, 3]", (0,)) == "[2, 3]"
    assert drop("[1, 2, 3]", (1,)) == "[1, 3]"
    assert drop("[1, 2, 3]", (2,)) == "[1, 2]"
    assert drop('{ "a" : 1 }', ("a",)) == "{}"
    assert drop('{"a": 1}', ("b",)) == '{"a": 1}'


def test_put_text_replaces_a_value_by_the_given_letters() -> None:
    assert put_text('{"a": "x" }', ("a",), "1.50e1") == '{"a": 1.50e1 }'
    assert put_text(" {} ", (), "{ }") == " { } "
    assert put_text("{}", ("a",), "1") == "{}"


def test_of_a_key_given_twice_the_last_is_meant_and_the_first_stays() -> None:
    text = '{"a": {"x": 1}, "a": {"y": 2}}'
    assert put(text, ("a", "z"), 3) == '{"a": {"x": 1}, "a": {"y": 2, "z": 3}}'
    assert find(text, ("a", "x")) is None
    assert drop(text, ("a",)) == '{"a": {"x": 1}}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  "a": 1,\n}', "line 3, column 1"),
        ('{\n  // why\n  "a": 1}', "line 2, column 3"),
        ("", "line 1, column 1"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("{} {}", "line 1, column 4: text after the end"),
        ('{"a": "tab\there"}', "line 1, column 11"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(NotJson, match=told):
        root(text)


objects = st.dictionaries(st.text(), values, max_size=5)


@given(document=objects, layout=layouts, key=st.text(), value=values)
def test_put_and_drop_mean_what_they_mean_in_a_dictionary(
    document: dict, layout: dict, key: str, value: object
) -> None:
    text = json.dumps(document, **layout)
    changed = put(text, (key,), value)
    assert json.loads(changed) == {**document, key: value}
    assert list(json.loads(changed)) == list({**document, key: value})
    assert json.loads(drop(changed, (key,))) == {k: v for k, v in document.items() if k != key}
    if document and key not in document:
        assert drop(changed, (key,)) == text


@given(items=st.lists(values, max_size=5), layout=layouts, value=values)
def test_what_is_appended_to_a_list_can_be_dropped_without_a_trace(
    items: list, layout: dict, value: object
) -> None:
    text = json.dumps({"list": items}, **layout)
    changed = append(text, ("list",), value)
    assert json.loads(changed) == {"list": [*items, value]}
    assert json.loads(drop(changed, ("list", len(items)))) == {"list": items}
    if items:
        assert drop(changed, ("list", len(items))) == text
