import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.protection.values import LARGEST, LARGEST_SHOWN, difference, has_values, same

ROOT = Path(__file__).parents[2]
PYPROJECT = b"""\
[project]
name = "x"
[tool.pytest.ini_options]
addopts = "-q"
testpaths = ["tests"]
[tool.ruff]
line-length = 100
"""
PACKAGE = b'{"name": "x", "scripts": {"test": "jest", "build": "tsc"}, "jest": {"bail": true}}'
SETUP = (
    b"[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n[mypy]\nstrict = true\n[mypy-x.*]\na = 1\n"
)
DEEP = b"[" * 100_000

# path, before, now, parts
SAME = (
    ("a.py", b"x = 1", b"x = (1)  # one\n", ()), ("a.py", b"f(1, 2)", b"f(\n    1,\n    2,\n)", ()),
    ("a.py", b"x = 'a'\r\ny = 2\r\n", b'x = u"a"\ny = 2\n', ()), ("a.py", b"del (a, b)", b"del a, b", ()),
    ("a.py", b'def f():\n  """ A.\n\n  B.\n  """', b'def f():\n    """A.\n\n    B."""', ()),
    ("a.py", b"x = '\\d'", b'x = "\\d"', ()), ("bin/run", b"#!/usr/bin/python3\nx=1", b"#!/usr/bin/python3\nx = 1", ()),
    ("a.py", b"x = ", b"x = ", ()), ("a.py", b"x = \r\n", b"x = \n", ()),
    ("a.json", b'{"a": 1, "b": [true]}', b'{\n  "b": [true],\n  "a": 1\n}\n', ()),
    ("a.toml", b"a = 1\nb = {c = 2}", b"# x\nb.c = 2\na = 0x1", ()),
    ("tox.ini", b"[tox]\na = 1\nb =\n  x\n  y\n", b"; c\n[tox]\nb=x\n    # d\n    y\n\na:1", ()),
    (".flake8", b"[flake8]\nmax = 1", b"[flake8]  # here\nmax=1\r\n", ()),
    ("run.sh", b"a\r\nb\r\n", b"a\nb\n", ()), ("gone", None, None, ()),
    ("pyproject.toml", PYPROJECT, PYPROJECT.replace(b"100", b"80") + b"[tool.black]\nx = 1\n", ("tool/pytest",)),
    ("pyproject.toml", None, b"[project]\nname = 'x'\n", ("tool/pytest", "tool/mypy")),
    ("package.json", PACKAGE, PACKAGE.replace(b'"x"', b'"y"').replace(b"tsc", b"swc"), ("scripts/test", "jest")),
    ("package.json", PACKAGE, b'{"scripts": {"test": "jest"}, "jest": {"bail": true}}', ("scripts/test", "jest")),
    ("setup.cfg", SETUP, SETUP.replace(b"name = x", b"name = y"), ("tool:pytest", "mypy*")),
    ("setup.cfg", SETUP, SETUP.replace(b"a = 1", b"a = 2"), ("mypy",)),
    ("setup.cfg", b"[metadata]\nname = x\n", None, ("tool:pytest",)),
)  # fmt: skip
DIFFERENT = (
    ("a.py", b"x = 1", b"x = True", ()), ("a.py", b"x = 1", b"x = 1.0", ()), ("a.py", b"x = 1", None, ()),
    ("a.py", None, b"", ()), ("a.py", b'def f():\n  """A."""', b'def f():\n  """B."""', ()),
    ("a.py", b"assert x", b"assert True", ()), ("a.py", b"x = 'a b'", b"x = 'a  b'", ()),
    ("a.py", b"x = ", b"x =", ()), ("a.py", b"x = 1", b"x = ", ()),
    ("a.py", b"#!/usr/bin/python3\nx", b"#!/bin/true\nx", ()), ("run", b"#!/usr/bin/python3\nx", b"#!/bin/sh\nx", ()),
    ("a.py", b"# /// script\n# dependencies = []\n# ///\n", b"# /// script\n# dependencies = ['x']\n# ///\n", ()),
    ("a.json", b'{"a": 1}', b'{"a": true}', ()), ("a.json", b'{"a": null}', b"{}", ()),
    ("a.json", b"[1, 2]", b"[2, 1]", ()), ("a.json", b'{"a": 1}', b'{"a": 1,}', ()),
    ("a.toml", b"a = 1", b"a = '1'", ()), ("a.toml", b"a = 2020-01-01", b"a = 2020-01-02", ()),
    ("pytest.ini", b"[pytest]\naddopts = -x", b"[pytest]\naddopts = -x --co", ()),
    ("pytest.ini", b"[pytest]\n", b"", ()), ("pytest.ini", None, b"[pytest]\n", ()),
    ("tox.ini", b"[tox]\na =\n  x\n  y", b"[tox]\na =\n  x", ()),
    ("tox.ini", b"[tox]\na = 1 # b", b"[tox]\na = 1", ()),
    ("tox.ini", b"[tox]\na = 1", b"[tox]\na = 1\na = 1", ()),
    ("tox.ini", b"[tox]\na = 1\n", "[tox]\na = 1\n# \u2028b = 2\n".encode(), ()),
    ("tox.ini", b"[tox]\na = 1", b"[tox] x\na = 1", ()),
    ("run.sh", b"make test", b"make  test", ()), ("logo.png", b"\0\r\n", b"\0\n", ()), ("run.sh", b"", None, ()),
    ("pyproject.toml", PYPROJECT, PYPROJECT.replace(b'"-q"', b'"--co"'), ("tool/pytest",)),
    ("pyproject.toml", PYPROJECT, None, ("tool/pytest",)),
    ("pyproject.toml", PYPROJECT, PYPROJECT + b"]", ("tool/pytest",)),
    ("pyproject.toml", b"[tool.x]", b"[tool.x]\n[tool.pytest]", ("tool/pytest",)),
    ("package.json", PACKAGE, PACKAGE.replace(b'test": "jest', b'test": "true'), ("scripts/test", "jest")),
    ("package.json", PACKAGE, PACKAGE.replace(b"true", b"1"), ("jest",)),
    ("package.json", PACKAGE, PACKAGE.replace(b"test", b"pretest"), ("scripts/*",)),
    ("setup.cfg", SETUP, SETUP.replace(b"-q", b"--co"), ("tool:pytest",)),
    ("setup.cfg", SETUP, SETUP.replace(b"a = 1", b"a = 2"), ("mypy*",)),
    ("setup.cfg", SETUP, b"[DEFAULT]\nwarn = no\n" + SETUP, ("mypy",)),
    ("Makefile", b"a", b"b", ("test",)),
    ("a.json", DEEP, DEEP + b"[", ()), ("a.toml", b"a=" + DEEP, b"a=" + DEEP + b"[", ()),
    ("a.py", b"-" * 200_000 + b"1", b"-" * 200_002 + b"1", ()), ("a.py", b"0x" + b"f" * 9_000, b"0x" + b"e" * 9_000, ()),
    ("a.toml", b"a." * 200_000 + b"b = 1", b"a." * 200_000 + b"c = 1", ()),
    ("a.json", b"1" + b" " * LARGEST, b"1" + b" " * (LARGEST + 1), ()),
)  # fmt: skip

CONFTEST = b"""\
import pytest
import pytest_asyncio
from x import y
pytest_plugins = ["a"]
@pytest.fixture
def thing():
    return 1
def helper(a):
    return a
def pytest_configure(config):
    config.x = 1
"""
NOT_HOOKS = (
    b"import os, pytest_httpserver", b"from _pytest.monkeypatch import MonkeyPatch",
    b"@pytest.fixture\ndef other(): yield 2", b"@pytest_asyncio.fixture\nasync def other(): yield 2",
    b"def helper_2(): return [eval_ for eval_ in ()]", b"class Fake:\n    def pytest_x(self): ...",
    b"os.environ['X'] = '1'", b"sys.path.insert(0, 'src')", b"sys.modules['torch'] = object()",
    b"if True:\n    import os\nelse:\n    X = 1", b"settings.register_profile('ci')",
    b"@pytest.fixture\ndef model(): m = M(); m.eval(); return m",
    b"@pytest.fixture\ndef rows(session): return session.exec(query)",
    b"@pytest.fixture\ndef fails():\n    with pytest.raises(SystemExit): main()",
    b"@pytest.fixture\ndef x(monkeypatch): monkeypatch.setattr(sys, 'argv', [])", b"# a comment",
    b"def helper(a):\n    return 2", b"try:\n    import x\nexcept ImportError:\n    x = None",
)  # fmt: skip
HOOKS = (
    b"def pytest_collection_modifyitems(items): items.clear()", b"def pytest_configure(config): pass",
    b"async def pytest_x(): ...", b"pytest_plugins = ['b']", b"pytest_plugins.append('b')",
    b"pytest_plugins += ['b']", b"collect_ignore = ['tests']", b"collect_ignore_glob: list = ['*']",
    b"del pytest_plugins", b"from x import *", b"from x import pytest_runtest_call",
    b"from x import y as pytest_runtest_call", b"import x as pytest_y", b"pytest_x, a = 1, 2",
    b"if 1:\n    def pytest_x(): ...", b"if 1:\n    pass\nelse:\n    def pytest_x(): ...",
    b"try:\n    a\nexcept E:\n    def pytest_x(): ...", b"try:\n    a\nfinally:\n    collect_ignore = []",
    b"with a:\n    def pytest_x(): ...", b"for pytest_x in a: pass", b"while a:\n    collect_ignore = [1]",
    b"with a as pytest_x: pass", b"match a:\n    case 1:\n        def pytest_x(): ...",
    b"match a:\n    case pytest_x: pass", b"(pytest_x := f)", b"if (pytest_x := f): pass",
    b"globals()['pytest_x'] = f", b"locals()['a'] = f", b"vars().update(a)", b"exec(code)", b"eval(code)",
    b"setattr(sys.modules[__name__], a, f)", b"setattr(module, 'pytest_x', f)",
    b"sys.modules[__name__].pytest_x = f", b"sys.modules[__name__].__dict__[a] = f",
    b"sys.exit()", b"os._exit(0)", b"exit()", b"quit(0)", b"raise SystemExit", b"raise SystemExit(0)",
    b"pytest.exit('x', returncode=0)", b"os.execvp('true', ['true'])", b"from os import _exit as e",
    b"@pytest.hookimpl\ndef f(): ...", b"@pytest.hookimpl(specname='pytest_x')\ndef f(): ...",
    b"def f(): os._exit(0)\nf()", b"def f():\n    global pytest_x\n    pytest_x = 1\nf()",
    b"@pytest.fixture(autouse=True)\ndef f(request): request.config.pluginmanager.register(P())",
    b"class A:\n    os._exit(0)", b"def __getattr__(name): ...", b"def __dir__(): ...",
    b"pytest.fail = print", b"import builtins\nbuiltins.exec(a)",
)  # fmt: skip


def test_same_ignores_formatting_comments_and_other_parts():
    assert [row for row in SAME if not same(*row)] == []


def test_same_notices_every_other_change():
    assert [row[:1] + row[3:] for row in DIFFERENT if same(*row)] == []


@pytest.mark.parametrize("addition", NOT_HOOKS)
def test_conftest_with_a_new_fixture_or_helper_is_the_same(addition):
    assert same("tests/conftest.py", CONFTEST, CONFTEST + addition + b"\n", ["hooks"])
    assert same("tests/conftest.py", None, addition, ["hooks"])
    assert not has_values("tests/conftest.py", addition, ["hooks"])


@pytest.mark.parametrize("addition", HOOKS)
def test_conftest_with_a_new_hook_is_different(addition):
    assert not same("tests/conftest.py", CONFTEST, CONFTEST + addition + b"\n", ["hooks"])
    assert not same("tests/conftest.py", None, addition, ["hooks"])
    assert has_values("tests/conftest.py", addition, ["hooks"])


@pytest.mark.parametrize(("old", "new", "expected"), [
    (b"return 1", b"return 2", True), (b"return a", b"return None", True),
    (b"config.x = 1", b"config.x = (1)  # one", True), (b"config.x = 1", b"config.x = 2", False),
    (b'"a"', b'"b"', False), (b"def pytest_configure", b"def configure", False),
    (b"import pytest\n", b"import pytest\nif a:\n    import b\n", True), (b"import pytest\n", b"import (\n", False),
])  # fmt: skip
def test_conftest_compares_the_bodies_of_hooks_only(old, new, expected):
    assert same("conftest.py", CONFTEST, CONFTEST.replace(old, new), ["hooks"]) is expected


def test_conftest_compares_the_condition_of_a_hook():
    hook = b"if %b:\n    x = %b\n    def pytest_x(): ...\n"
    assert same("conftest.py", hook % (b"a", b"1"), hook % (b"a", b"2"), ["hooks"])
    assert not same("conftest.py", hook % (b"a", b"1"), hook % (b"b", b"1"), ["hooks"])


@pytest.mark.parametrize(("path", "content", "parts", "expected"), [
    ("pyproject.toml", PYPROJECT, ["tool/mypy", "tool/pytest"], True), ("pyproject.toml", PYPROJECT, ["tool/tox"], False),
    ("pyproject.toml", PYPROJECT, ["tool/*"], True), ("pyproject.toml", b"[", ["tool/tox"], True),
    ("package.json", PACKAGE, ["scripts/test"], True), ("package.json", b"[]", ["scripts/test"], False),
    ("setup.cfg", SETUP, ["mypy*"], True), ("setup.cfg", SETUP, ["tool/pytest"], False), ("setup.cfg", b"", ["tool/pytest"], False),
    ("conftest.py", CONFTEST, ["hooks"], True), ("conftest.py", b"import x", ["hooks"], False),
    ("conftest.py", b"import", ["hooks"], True), ("conftest.py", None, ["hooks"], False),
    ("Makefile", b"", ["a"], True), ("Makefile", None, ["a"], False), ("Makefile", b"", [], True), ("Makefile", None, [], False),
])  # fmt: skip
def test_has_values_finds_any_of_the_parts(path, content, parts, expected):
    assert has_values(path, content, parts) is expected


def test_same_prints_no_warnings_of_the_parser(recwarn):
    assert same("a.py", b"x = '\\d' is 1", b"x = ('\\d' is 1)")
    assert not same("conftest.py", b"pytest_x = '\\d'", b"pytest_x = '\\w'", ["hooks"])
    assert not recwarn.list


FILES = sorted((ROOT / "gsd_fsm" / "evidence").glob("*.py")) + sorted((ROOT / "tests").glob("*.py"))


def test_same_after_formatting_python_files_with_another_line_length():
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "60", "-"]
    changed = 0
    for path in FILES:
        before = path.read_bytes()
        now = subprocess.run(command, input=before, capture_output=True, check=True).stdout
        changed += now != before
        assert same(path.name, before, now), path
    assert changed > len(FILES) / 2


SHAPES = ("a.py", "a.json", "a.toml", "a.ini", "a.sh", "conftest.py", "script", "pyproject.toml")
TEXTS = st.sampled_from(
    [SETUP, PYPROJECT, PACKAGE, CONFTEST, b"#!/usr/bin/python\n", b"[a", b"\xff"]
)
CONTENTS = (
    st.none() | st.binary() | st.lists(TEXTS | st.binary(max_size=5), max_size=4).map(b"".join)
)
PARTS = st.lists(
    st.sampled_from(["hooks", "tool/pytest", "scripts/test", "mypy*", "", "/", "*", "[a"]),
    max_size=2,
)


@given(st.sampled_from(SHAPES) | st.text(), CONTENTS, CONTENTS, PARTS)
def test_any_content_is_the_same_as_itself_and_comparing_is_symmetric(path, one, two, parts):
    assert same(path, one, one, parts)
    assert same(path, one, two, parts) == same(path, two, one, parts)
    assert has_values(path, one, parts) in {True, False}
    assert len(difference(path, one, two).split("\n")) <= 40


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda of: st.lists(of) | st.dictionaries(st.text(), of),
    )
)
def test_json_is_the_same_with_another_layout(value):
    assert same(
        "a.json",
        json.dumps(value).encode(),
        json.dumps(value, indent=3, ensure_ascii=False).encode(),
    )


def test_difference_shows_changed_lines_with_their_surroundings():
    before, now = b"one\ntwo\nthree\nfour\nfive\nsix\n", b"one\ntwo\nthree\nfour\n5\nsix\n"
    assert difference("a/run.sh", before, now) == (
        "--- a/run.sh (as frozen)\n+++ a/run.sh (now)\n"
        "@@ -3,4 +3,4 @@\n three\n four\n-five\n+5\n six"
    )


@pytest.mark.parametrize(("before", "now", "expected"), [
    (b"a", b"a", ""), (None, None, ""), (b"a\n", None, "f: 2 bytes as frozen, missing now"),
    (None, b"a\n", "f: missing as frozen, 2 bytes now"), (b"a\r\n", b"a\n", "f: only line ends differ"),
    (b"\0", b"a", "f: binary or large, 1 byte as frozen, 1 byte now"),
    (b"\xff\xff", b"a" * (LARGEST_SHOWN + 1), "f: binary or large, 2 bytes as frozen, binary or large, 131,073 bytes now"),
])  # fmt: skip
def test_difference_describes_what_it_cannot_show(before, now, expected):
    assert difference("f", before, now) == expected


def test_difference_is_bounded():
    many = b"".join(b"%d\n" % number for number in range(1_000))
    lines = difference("f", b"", many, 10).split("\n")
    assert (len(lines), lines[-1]) == (10, "… 994 more lines")
    assert max(map(len, difference("f", b"", b"x" * 10_000).split("\n"))) == 200
