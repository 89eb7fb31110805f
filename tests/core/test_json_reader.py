"""Our own JSON: ordinary, strict, and the same with and without the private scanner."""

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
def test_our_json_is_ordinary_json(value: Any) -> None:
    assert json.loads(dumps(value)) == value
    assert dumps(value) == json.dumps(value, separators=(",", ":"))
    assert parse_json(dumps(value)) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1, 2}, object(), 1j])
def test_what_is_not_json_is_not_written(value: Any) -> None:
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
        value = codec.decode_line(line)
        print(codec.dumps(value))
    except Exception as error:
        print("refused", isinstance(error, ValueError), type(error).__name__ * (not isinstance(error, ValueError)))
"""


def test_without_the_private_scanner_the_public_one_says_the_same() -> None:
    root = str(Path(__file__).parents[2])
    texts = [in_data(v) for v in (*HOSTILE.values(), *HARMLESS.values()) if b"\n" not in v]
    texts += [json.dumps({"a": [1.5, "é\u2028", None, {"b": -0.0}]}).encode(), b"", b" {}", b"{} "]
    said = {}
    for module in ("_json", "json"):
        done = subprocess.run(
            [sys.executable, "-I", "-c", FALLBACK, root, module],
            input=b"\n".join(texts),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        said[module] = done.stdout.decode().splitlines()
    assert len(said["_json"]) == len(texts)
    assert said["json"] == said["_json"]
    assert not [line for line in said["_json"] if line.startswith("refused False")]
