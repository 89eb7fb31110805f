"""The builder of the hook file: its modules, their order, and their names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.build_hook import build, parts
from tests.support.events import write


def write_core(root: Path, *hot: str, **modules: str) -> Path:
    """Write modules, of which `main` is the entry, and what an ordinary stop uses of them."""
    write(root / "hot_path.txt", "\n".join(hot))
    for name, text in modules.items():
        path = root / "core" / ("hook/main.py" if name == "main" else f"{name}.py")
        write(path, text.replace("from core.", "from gsd_fsm.core."))
    return root / "core"


def built(core: Path) -> str:
    return build(core, core.parent / "hot_path.txt")


def output(core: Path) -> str:
    hook = core.parent / "gsd_fsm_hook.py"
    hook.write_text(built(core), "utf-8")
    command = [sys.executable, "-I", "-S", str(hook)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_builder_puts_modules_in_order_and_those_imported_inside_functions_into_later_parts(
    tmp_path: Path,
) -> None:
    folder = write_core(
        tmp_path,
        main="from core.low import low\ndef main():\n    from core.top import top\n    print(top())\n",
        top="from core.low import low\nfrom core.mid import mid\n"
        "def top():\n    from core.rare import rare\n    return rare() + mid\n",
        mid="mid = 1\n",
        low="low = 2\n",
        rare="from core.mid import mid\n"
        "def rare():\n    from core.rarest import rarest\n    return mid + rarest\n",
        rarest="from core.low import low\nrarest = low\n",
        unused="d = 1\n",
    )
    expected = {"entry": "low hook.main", "engine": "mid top", "rare": "rare rarest"}
    found = parts(folder, folder.parent / "hot_path.txt")
    assert {part: " ".join(modules) for part, modules in found.items()} == expected
    assert output(folder) == "4\n"


def test_builder_keeps_private_names_apart_and_repeats_no_import(tmp_path: Path) -> None:
    folder = write_core(
        tmp_path,
        main="import sys\nfrom core.a import a\nfrom core.b import b\n"
        "_x = 3\ndef _f():\n    return _x\ndef main():\n    print(a(), b(), _f())\n",
        a="import sys\n_x = 1\ndef _f():\n    return _x\ndef a():\n    return _f()\n",
        b="class _x:\n    y = 2\n\ndef _f():\n    return _x.y\ndef b():\n    return _f()\n",
    )
    assert output(folder) == "1 2 3\n"
    assert "\ndef _a_f():\n    return _a_x\n" in built(folder)
    assert built(folder).count("import sys\n") == 1


LOOKALIKES = """
_x = 1
def _f(_x=_x, *, key=lambda _x: _x):
    return key(_x) + 1
class Box:
    _x = 10
    _z = _x
    def _f(self, _y):
        return self._x, _y, _x, _f(_x=4)
def shadow():
    _f = [_x for _x in (5, 6)]
    def inner():
        return _f, _x
    return inner()
def main():
    print(Box()._f(_y=7), Box._z, shadow(), "_x", f"{_x} _x {_f()!r:>{_x}}")
"""


def test_builder_renames_nothing_but_the_names_of_the_module(tmp_path: Path) -> None:
    folder = write_core(tmp_path, main=LOOKALIKES)
    assert output(folder) == "(10, 7, 1, 5) 10 ([5, 6], 1) _x 1 _x 2\n"


def test_builder_drops_types_and_keeps_defaults(tmp_path: Path) -> None:
    folder = write_core(
        tmp_path,
        main="from __future__ import annotations\n\nTYPE_CHECKING = False\n"
        "if TYPE_CHECKING:\n    from typing import Any\nelse:\n    Any = 5\n\n"
        "def add(\n    a: dict[str, int] | None, /, b: int = 2, *c: Any, d: int = 3, **e: Any\n"
        ") -> dict[str, Any]:\n    total: int | None = b + d\n    return total\n"
        "def main() -> None:\n    print(add(None), Any)\n",
    )
    assert output(folder) == "5 5\n"
    assert "def add(\n    a, /, b=2, *c, d=3, **e\n):\n    total = b + d\n" in built(folder)


def test_builder_drops_comments_and_docstrings_outside_the_entry(tmp_path: Path) -> None:
    late = '"""M."""\ndef late():\n    """F."""\n    # comment\n    return "# no"  # end\n'
    main = "def main():\n    from core.late import late\n    print(late())\n"
    folder = write_core(tmp_path, "late.late", main=main, late=late)
    assert output(folder) == "# no\n"
    assert '# def late():\n#     return "# no"\n# end\n' in built(folder)


COLD = """
def hot():
    try:
        return cold(1, b=2) + TABLE[0](3, 4) + Box().size
    except Oops:
        return 0
def cold(a, b):
    return a + _helper(b)
def _helper(b):
    return b
class Box:
    size = 5
class Oops(Exception):
    pass
TABLE = (cold,)
"""


def test_builder_moves_what_ordinary_stops_do_not_use_to_the_rare_part(tmp_path: Path) -> None:
    main = "def main():\n    from core.late import hot\n    print(hot(), _loader_loaded)\n"
    folder = write_core(tmp_path, "late.hot", main=main, late=COLD)
    engine, _, rare = built(folder).partition("\n# begin engine\n")[2].partition("# begin rare\n")
    assert engine.startswith('# # ── deferred\n# defer("Box", "cold")\n')
    found = [re.findall("^# (?:def|class) (.*):", part, re.MULTILINE) for part in (engine, rare)]
    # An except clause needs the class itself.
    assert found == [["hot()", "Oops(Exception)"], ["cold(a, b)", "_late_helper(b)", "Box"]]
    assert output(folder) == "15 ['engine', 'rare']\n"


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"a": "x = 1", "b": "x = 2"}, "x is defined in a and in b"),
        ({"a": "from time import time", "b": "time = 2"}, "time is defined in time.time and in b"),
        ({"a": "from core.b import x as y", "b": "x = 1"}, "a, line 1: import public names"),
        ({"a": "from core.b import _x", "b": "_x = 1"}, "a, line 1: import public names"),
        ({"a": "from core.b import *", "b": "x = 1"}, "a, line 1: import public names"),
        ({"a": "from gsd_fsm.core import b", "b": ""}, "a, line 1: the hook cannot import gsd_fsm"),
        ({"a": "def f():\n    import re", "b": ""}, "a, line 2: the hook cannot import re"),
        ({"a": "from core.b import b", "b": "from core.a import a"}, "import cycle: a -> b -> a"),
        ({"a": "def f():\n    global _x\n    _x = 1", "b": ""}, "'global _x': the hook cannot"),
        ({"a": "x: int", "b": ""}, "'x: int': an annotation needs a value"),
    ],
)
def test_builder_refuses_what_one_namespace_cannot_hold(
    tmp_path: Path, modules: dict[str, str], message: str
) -> None:
    main = "from core.a import a\nfrom core.b import b\n"
    with pytest.raises(SystemExit, match=f"^{re.escape(message)}"):
        built(write_core(tmp_path, main=main, **modules))


def test_builder_refuses_a_hot_path_with_unknown_names(tmp_path: Path) -> None:
    main = "def main():\n    from core.late import a\n"
    folder = write_core(tmp_path, "late.gone", main=main, late="a = 1\n")
    message = r"^hot_path.txt: there is no late.gone; run: make profile$"
    with pytest.raises(SystemExit, match=message):
        built(folder)
