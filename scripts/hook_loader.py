"""Load a part of the hook from the comments at the end of this file, and cache its bytecode."""

from __future__ import annotations

import gc
import marshal
import sys
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader, cache_from_source

gc.disable()  # the process ends before there is anything to collect
IDENTITY = ""  # digest of the parts
PARTS = ("engine", "rare")
_loaded: list[str] = []


def defer(*names: str) -> None:
    """Define functions and classes of the rare part; the first call of one loads the part."""
    namespace = globals()
    for name in names:
        namespace[name] = lambda *args, _name=name, **kwargs: _call(_name, args, kwargs)


def _call(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    load("rare")
    return globals()[name](*args, **kwargs)


def load(part: str) -> None:
    """Define the functions of a part in this module, unless they are already defined."""
    if part in _loaded:
        return
    name = "_".join((__file__[:-3], part, IDENTITY, MAGIC_NUMBER[:2].hex()))
    path = cache_from_source(name + ".py")
    try:
        with open(path, "rb", 0) as file:
            code = marshal.loads(file.read())
    except (OSError, EOFError, TypeError, ValueError):  # not cached, or damaged
        code = _compiled(part, path)
    exec(code, globals())
    _loaded.append(part)


def _compiled(part: str, path: str) -> object:
    with open(__file__, encoding="utf-8") as file:
        before, begin, rest = file.read().partition("\n# begin " + part + "\n")
    text = rest.partition("\n# end\n")[0].replace("\n# ", "\n")
    # Blank lines keep the line numbers of this file.
    text = "\n" * (before + begin).count("\n") + text
    code = compile(text, __file__, "exec", dont_inherit=True)
    if not sys.dont_write_bytecode:
        SourceFileLoader(part, __file__)._cache_bytecode(__file__, path, marshal.dumps(code))
    return code
