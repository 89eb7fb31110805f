"""What known programs do with the files that their arguments name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from gsd_fsm.protection.commands import Command
from gsd_fsm.protection.programs.prefixes import PYTHON, SHELLS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = _words(
    ". : [ [[ alias bg break cd command continue declare echo eval exec exit export false fg getopts "
    "hash jobs let local popd printf pushd pwd read readonly return set shift shopt source test time "
    "times trap true type typeset ulimit umask unalias unset wait"
)
# Programs whose words are not files that they read.
_NO_FILES = (BUILTINS - _words(". [ [[ source test")) | _words(
    "basename chgrp chmod chown date dirname expr hostname id kill killall mkdir mktemp pkill ps rm rmdir "
    "seq sleep ssh sync touch tty uname which whoami yes"
)
# Programs that only look at files: what they name is what the work is about.
_READERS = _words(
    "ack ag awk bat cat cksum comm cut egrep fgrep file gawk grep head hexdump jq less ls mawk md5sum more "
    "nawk nl od paste readlink realpath rg sed sha1sum sha256sum sha512sum shasum sort stat strings tac "
    "tail uniq wc xxd yq zcat zgrep"
)
# The same, but not each of their words is a file: compilers, installers, git and others.
_TOOLS = _words(
    "actionlint apt apt-get as autoflake autopep8 babel bandit brew bun bundle c++ c99 cargo cc clang clang++ "
    "clang-format clang-tidy cmake codespell column compileall composer conda cp cppcheck csc dart deno "
    "df doctest dotnet du elixirc erlc esbuild expand find fmt fold g++ gcc gem gfortran gh ghc git go "
    "gofmt goimports gunzip gzip hadolint hatch hg identify install javac json.tool kotlinc ld ln luac "
    "markdownlint meson mv nasm next nim ninja nm npm objdump ocamlc ocamlopt openssl pdftotext pdm pip "
    "pip3 pipenv pipx pnpm poetry pr protoc py_compile pycodestyle pydocstyle pyflakes readelf rev rollup "
    "rustc rustup rye sass shfmt size standard sum svn swift swiftc tar tee tidy tr tree unzip uv vale "
    "vite vulture webpack xmllint xmlstarlet xo yapf yarn zig"
)
_PATTERN_FIRST = _words("ack ag awk egrep fgrep gawk grep jq mawk nawk rg sed yq zgrep")
_COMPARERS = _words("cmp colordiff diff sdiff")
_PROGRAM_FILE = ("-f", "--file", "--from-file")  # of those in _PATTERN_FIRST
_PAIRS = ("--arg", "--argfile", "--argjson", "--rawfile", "--slurpfile")  # of jq: name and value
_OUTPUT = ("-o", "--out", "--outfile", "--output", "--output-file")
# Options with a value that is not a file.
_GREP = "-e -m -A -B -C -g -t --include --exclude --exclude-dir --regexp --glob --type --max-count"
_FIND = "-name -iname -path -ipath -type -size -mtime -mmin -maxdepth -mindepth -perm -user -regex"
_VALUES = {
    "cut": "-b -c -d -f",
    "diff": "-I -U -C -x",
    "find": _FIND,
    "head": "-n -c",
    "jq": "--indent",
    "sed": "-e --expression",
    "sort": "-k -t -S",
    "stat": "-c -f --format",
    "tail": "-n -c",
    "xmllint": "--xpath",
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), "-v -F"),
    **dict.fromkeys(("ack", "ag", "egrep", "fgrep", "grep", "rg", "zgrep"), _GREP),
    # options whose value is a text to run
    **dict.fromkeys(("bun", "deno", "julia", "lua", "perl", "Rscript", "ruby"), "-e"),
    **dict.fromkeys(("node", "nodejs"), "-e -p --eval --print"),
    "php": "-r",
    "python": "-c -W -X",
    **dict.fromkeys(SHELLS, "-o -O"),
}
_CODE = {
    **dict.fromkeys(("bun", "deno", "julia", "lua", "Rscript"), ("-e",)),
    **dict.fromkeys(("node", "nodejs"), ("-e", "-p", "--eval", "--print")),
    "php": ("-r",),
    "python": ("-c",),
}
_RUNS_FILES = ("dart", "deno", "go", "zig")  # `go run FILE`
_SYNTAX_ONLY = {
    "node": ("-c", "--check"),
    "perl": ("-c",),
    "php": ("-l", "--syntax-check"),
    "ruby": ("-c",),
    **dict.fromkeys(SHELLS, ("-n",)),
}
# A word that looks like a path, for programs that also take other words.
_PATH = re.compile(r"(?=[\w./@+~-]*(?:/|\.[A-Za-z]\w{0,9}$))[\w./@+~-]+")
_FILE_TESTS = _words("-G -L -N -O -S -b -c -d -e -f -g -h -k -p -r -s -u -w -x")


class Word(NamedTuple):
    """A word of a command that may be a file."""

    text: str
    is_subject: bool  # whether the program examines it, so that it does not decide the result
    is_file: bool  # whether the program takes it for a file, whatever it looks like


class Named(NamedTuple):
    """The words of a command that may be files it reads, and those that it writes."""

    read: list[Word]
    written: tuple[str, ...] = ()


def program_words(commands: Iterable[Command]) -> list[str]:
    """Return the programs that commands start, each once: no builtins of the shell, no modules."""
    named = (it.program for it in commands if it.program and not it.is_module)
    return list(dict.fromkeys(word for word in named if word not in BUILTINS))


def looks_like_path(word: str) -> bool:
    """Return whether a word is more likely a file than a number, a name or a text."""
    return _PATH.fullmatch(word) is not None


def named_by(command: Command) -> Named:
    """Return the words of a command that may be files."""
    name, words, inputs = command.name, list(command.arguments), command.inputs
    name = "python" if PYTHON.fullmatch(name) else name
    if name in ("test", "[", "[["):
        return Named([*_subjects(_tested(words)), *_subjects(inputs)])
    if name in _COMPARERS:
        return Named([*_used(operands(words, _VALUES["diff"])), *_used(inputs)], _written(words))
    if name in _NO_FILES:
        return Named(_used(inputs))
    if any(word in _SYNTAX_ONLY.get(name, ()) for word in words):
        return Named([*_subjects(operands(words)), *_used(inputs)])
    if any(_is_code(name, word) for word in words):
        found = operands(words, _VALUES.get(name, ""))
        return Named([*_subjects(found, is_file=False), *_subjects(inputs)])
    if name in _RUNS_FILES and words[:1] == ["run"]:
        return Named([*_used(operands(words[1:]), is_file=False), *_used(inputs)])
    if name in _READERS or name in _TOOLS:
        return _looked_at(name, words, inputs)
    found = operands(words, f"{_VALUES.get(name, '')} {' '.join(_OUTPUT)}")
    attached = [_attached(word) for word in words if not word.startswith(_OUTPUT)]
    script = found[:1] if name in SHELLS or name in ("source", ".") else []
    others = [*found[len(script) :], *attached]
    return Named([*_used(script), *_used(others, is_file=False), *_used(inputs)], _written(words))


def _is_code(name: str, word: str) -> bool:
    """Return whether an option gives an interpreter its program, so that the words are its data."""
    if name in ("perl", "ruby"):
        return re.fullmatch(r"-[a-z0]*[eE]", word) is not None
    return word in _CODE.get(name, ())


def _subjects(words: Iterable[str], *, is_file: bool = True) -> list[Word]:
    return [Word(word, True, is_file) for word in words]


def _used(words: Iterable[str], *, is_file: bool = True) -> list[Word]:
    return [Word(word, False, is_file) for word in words]


def _attached(word: str) -> str:
    """Return the value of `--option=value`, "" of other words."""
    return word.partition("=")[2] if word.startswith("-") else ""


def _tested(words: list[str]) -> list[str]:
    """Return the files of `test` and `[`."""
    found = []
    for at, word in enumerate(words[:-1]):
        if word in _FILE_TESTS:
            found.append(words[at + 1])
        elif word in ("-nt", "-ot", "-ef") and at:
            found += [words[at - 1], words[at + 1]]
    return found


def _looked_at(name: str, words: list[str], inputs: tuple[str, ...]) -> Named:
    """Return the files of a program that looks at files, compiles or installs them."""
    decisive: list[str] = []
    values, written = f"{_VALUES.get(name, '')} {' '.join(_OUTPUT)}", _written(words)
    if name in _PATTERN_FIRST:
        words = _without_pairs(words)
        decisive = [value for option, value in pairwise(words) if option in _PROGRAM_FILE]
        values = f"{_VALUES.get(name, '')} {' '.join(_PROGRAM_FILE)}"
    found = operands(words, values)
    if name in _PATTERN_FIRST and not any(_gives_pattern(name, word) for word in words):
        found = found[1:]
    if name in ("cp", "install", "ln", "mv"):
        found, written = found[:-1], tuple(found[-1:])
    elif name == "tee":
        found, written = [], tuple(found)
    subjects = _subjects(found, is_file=name in _READERS)
    return Named([*subjects, *_subjects(inputs), *_used(decisive)], written)


def _gives_pattern(name: str, word: str) -> bool:
    """Return whether an option names the pattern or program that is otherwise the first word."""
    if word.startswith(_PROGRAM_FILE):
        return True
    return name not in ("jq", "yq") and word.startswith(("-e", "--expression", "--regexp"))


def _without_pairs(words: list[str]) -> list[str]:
    """Return the words without the options of jq that take a name and a value."""
    dropped = {at + place for at, word in enumerate(words) if word in _PAIRS for place in range(3)}
    return [word for at, word in enumerate(words) if at not in dropped]


def _written(words: list[str]) -> tuple[str, ...]:
    named = [value for option, value in pairwise(words) if option in _OUTPUT]
    attached = [_attached(word) for word in words if word.partition("=")[0] in _OUTPUT]
    return tuple(filter(None, (*named, *attached)))


def operands(words: list[str], values: str = "") -> list[str]:
    """Return the words that are neither options nor the values of these options.

    A value does not begin with "-", since some of these options have none.
    """
    takes_value, at = values.split(), 0
    found: list[str] = []
    while at < len(words):
        if words[at] == "--":
            return [*found, *words[at + 1 :]]
        if words[at] in takes_value and not "".join(words[at + 1 : at + 2]).startswith("-"):
            at += 1
        elif not words[at].startswith("-"):
            found.append(words[at])
        at += 1
    return found
