"""Reading and writing JSON: strict, and the same with and without the private scanner."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from gsd_fsm.core.codec import dumps
from gsd_fsm.core.json_reader import parse_json
from tests.support.lines import HARMLESS, HOSTILE, VALUES, in_data


@given(VALUES)
def test_dumps_writes_what_the_standard_library_writes(value: Any) -> None:
    assert json.loads(dumps(value)) == value
    assert dumps(value) == json.dumps(value, separators=(",", ":"))
    assert parse_json(dumps(value)) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1, 2}, object(), 1j])
def test_dumps_refuses_values_that_json_cannot_express(value: Any) -> None:
    with pytest.raises(ValueError):
        dumps(value)


FALLBACK = """
import sys
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "json":
    sys.modules["_json"] = None
from gsd_fsm.core import codec
for line in sys.stdin.buffer.read().split(b"\\n"):
    try:
        print(codec.dumps(codec.decode_line(line)))
    except ValueError:
        print("refused")
"""


def test_decode_line_without_the_private_scanner_gives_the_same_results() -> None:
    root = str(Path(__file__).parents[2])
    texts = [in_data(v) for v in (*HOSTILE.values(), *HARMLESS.values()) if b"\n" not in v]
    texts += [json.dumps({"a": [1.5, "é\u2028", None, {"b": -0.0}]}).encode(), b"", b" {}", b"{} "]
    found = {}
    for module in ("_json", "json"):
        command = [sys.executable, "-I", "-c", FALLBACK, root, module]
        output = subprocess.check_output(command, input=b"\n".join(texts), timeout=60)
        found[module] = output.decode().splitlines()
    assert len(found["_json"]) == len(texts)
    assert found["json"] == found["_json"]
