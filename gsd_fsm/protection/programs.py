"""What known programs do with the files that their arguments name."""

from __future__ import annotations

import re
from typing import NamedTuple

from gsd_fsm.protection.commands import Command
from gsd_fsm.protection.prefixes import SHELLS

BUILTINS = frozenset(
    [
        ".",
        ":",
        "[",
        "[[",
        "alias",
        "bg",
        "break",
        "cd",
        "command",
        "continue",
        "declare",
        "echo",
        "eval",
        "exec",
        "exit",
        "export",
        "false",
        "fg",
        "getopts",
        "hash",
        "jobs",
        "let",
        "local",
        "popd",
        "printf",
        "pushd",
        "pwd",
        "read",
        "readonly",
        "return",
        "set",
        "shift",
        "shopt",
        "source",
        "test",
        "time",
        "times",
        "trap",
        "true",
        "type",
        "typeset",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "wait",
    ]
)
# Programs whose words are not files that they read.
_OTHERS = frozenset(
    [
        ":",
        "alias",
        "basename",
        "break",
        "chgrp",
        "chmod",
        "chown",
        "continue",
        "date",
        "dirname",
        "echo",
        "exit",
        "export",
        "expr",
        "false",
        "getopts",
        "hash",
        "hostname",
        "id",
        "kill",
        "killall",
        "let",
        "mkdir",
        "mktemp",
        "pkill",
        "printf",
        "ps",
        "pwd",
        "read",
        "return",
        "rm",
        "rmdir",
        "seq",
        "set",
        "shift",
        "shopt",
        "sleep",
        "ssh",
        "sync",
        "touch",
        "trap",
        "true",
        "tty",
        "type",
        "ulimit",
        "umask",
        "uname",
        "unset",
        "wait",
        "which",
        "whoami",
        "yes",
    ]
)
# Programs that only look at files: what they name is what the work is about.
_LOOKERS = {
    **dict.fromkeys(
        [
            "ag",
            "ack",
            "bat",
            "cat",
            "cksum",
            "column",
            "comm",
            "cut",
            "df",
            "du",
            "egrep",
            "exa",
            "expand",
            "fgrep",
            "file",
            "find",
            "fmt",
            "fold",
            "grep",
            "gunzip",
            "gzip",
            "head",
            "hexdump",
            "identify",
            "jq",
            "less",
            "ls",
            "lsd",
            "md5",
            "md5sum",
            "more",
            "mv",
            "cp",
            "ln",
            "nl",
            "nm",
            "objdump",
            "od",
            "openssl",
            "paste",
            "pdftotext",
            "pr",
            "readelf",
            "readlink",
            "realpath",
            "rev",
            "rg",
            "sed",
            "sha1sum",
            "sha224sum",
            "sha256sum",
            "sha384sum",
            "sha512sum",
            "shasum",
            "size",
            "sort",
            "stat",
            "strings",
            "sum",
            "tac",
            "tail",
            "tar",
            "tee",
            "tr",
            "tree",
            "uniq",
            "unzip",
            "wc",
            "xmllint",
            "xxd",
            "yq",
            "zcat",
            "zgrep",
            "awk",
            "gawk",
            "mawk",
            "nawk",
            "git",
            "hg",
            "svn",
            "gh",
        ],
        "",
    ),
    # compilers and checks of syntax
    **dict.fromkeys(
        [
            "as",
            "c++",
            "c99",
            "cargo",
            "cc",
            "clang",
            "clang++",
            "clang-format",
            "clang-tidy",
            "cmake",
            "compileall",
            "cppcheck",
            "csc",
            "dart",
            "dotnet",
            "elixirc",
            "erlc",
            "esbuild",
            "g++",
            "gcc",
            "gfortran",
            "ghc",
            "go",
            "gofmt",
            "goimports",
            "javac",
            "kotlinc",
            "ld",
            "luac",
            "meson",
            "nasm",
            "nim",
            "ninja",
            "ocamlc",
            "ocamlopt",
            "protoc",
            "py_compile",
            "rollup",
            "rustc",
            "sass",
            "swift",
            "swiftc",
            "tidy",
            "tsc",
            "webpack",
            "xmlstarlet",
            "yamllint",
            "zig",
            "hadolint",
            "actionlint",
            "markdownlint",
            "vale",
            "codespell",
            "autopep8",
            "autoflake",
            "yapf",
            "pycodestyle",
            "pydocstyle",
            "pyflakes",
            "vulture",
            "bandit",
            "doctest",
            "json.tool",
            "shfmt",
            "standard",
            "xo",
            "tslint",
            "vite",
            "next",
        ],
        "",
    ),
    # programs that install what others need
    **dict.fromkeys(
        [
            "apt",
            "apt-get",
            "brew",
            "bundle",
            "bun",
            "composer",
            "conda",
            "gem",
            "hatch",
            "npm",
            "pdm",
            "pip",
            "pip3",
            "pipenv",
            "pipx",
            "pnpm",
            "poetry",
            "rustup",
            "rye",
            "uv",
            "yarn",
        ],
        "",
    ),
}
_PATTERN_FIRST = {
    "ack", "ag", "awk", "egrep", "fgrep", "gawk", "grep", "jq", "mawk", "nawk", "rg", "sed", "yq", "zgrep",
}  # fmt: skip
# Options with a value that is not a file.
_VALUES = {
    "cut": "-b -c -d -f",
    "find": "-name -iname -path -ipath -type -size -mtime -mmin -maxdepth -mindepth -perm -user -regex",
    "head": "-n -c",
    "sort": "-k -t -S",
    "stat": "-c -f --format",
    "tail": "-n -c",
    "xmllint": "--xpath",
    "openssl": "-in",
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), "-v -F"),
    **dict.fromkeys(
        ("ack", "ag", "egrep", "fgrep", "grep", "rg", "zgrep"),
        "-e -m -A -B -C -g -t --include --exclude --exclude-dir --regexp --glob --type --max-count",
    ),
    "jq": "--indent",
    "sed": "-e --expression",
}
_GIVES_PATTERN = ("-e", "-f", "--expression", "--file", "--from-file", "--regexp")
_PROGRAM_FILE = ("-f", "--file", "--from-file")  # of those in _PATTERN_FIRST
_PAIRS = ("--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile")  # of jq: name and value
_SYNTAX_ONLY = {
    "node": ("-c", "--check"), "perl": ("-c",), "php": ("-l", "--syntax-check"), "ruby": ("-c",),
    **dict.fromkeys(SHELLS, ("-n",)),
}  # fmt: skip
_OUTPUT = ("-o", "--out", "--outfile", "--output", "--output-file")
_CODE = {
    **dict.fromkeys(
        ("node", "nodejs", "bun", "deno", "ruby", "perl", "Rscript", "lua", "julia"), "-e"
    ),
    "php": "-r",
}
# A word that looks like a path: for programs that also take other words.
_PATH = re.compile(r"(?=[\w./@+~-]*(?:/|\.[A-Za-z]\w{0,9}$))[\w./@+~-]+")
_FILE_TESTS = frozenset(
    [
        "-b",
        "-c",
        "-d",
        "-e",
        "-f",
        "-g",
        "-h",
        "-k",
        "-p",
        "-r",
        "-s",
        "-u",
        "-w",
        "-x",
        "-G",
        "-L",
        "-N",
        "-O",
        "-S",
        "-a",
    ]
)


class Named(NamedTuple):
    """The words of a command that may be files."""

    subjects: list[str]  # what it examines
    used: list[str]  # what decides the result
    is_plain: bool = False  # whether each word is a file, also one that does not look like a path
    written: tuple[str, ...] = ()


def looks_like_path(word: str) -> bool:
    """Return whether a word is more likely a file than a number, a name or a text."""
    return _PATH.fullmatch(word) is not None


def named_by(command: Command) -> Named:
    """Return the words of a command that may be files, and what it does with them."""
    name, words = command.name, list(command.arguments)
    if name in ("test", "[", "[["):
        return Named([*_tested(words), *command.inputs], [], is_plain=True)
    if name in ("cmp", "diff", "sdiff", "colordiff"):
        return Named([], [*operands(words, "-I -U -C -x"), *command.inputs], is_plain=True)
    if name in _OTHERS:
        return Named([], list(command.inputs))
    if name in SHELLS and any(it.startswith("-") and "n" in it for it in words[:1]):
        return Named(words[1:], list(command.inputs), is_plain=True)
    if any(word in _SYNTAX_ONLY.get(name, ()) for word in words):
        return Named([it for it in words if not it.startswith("-")], [], is_plain=True)
    if name in _LOOKERS:
        return _looked_at(name, words, command.inputs)
    if name in SHELLS:
        script = operands(words, "-o -O")
        return Named(
            [], [*script[:1], *filter(looks_like_path, script[1:]), *command.inputs], is_plain=True
        )
    used, written = _used(name, words)
    return Named([], [*used, *command.inputs], written=written)


def _tested(words: list[str]) -> list[str]:
    """Return the files of `test` and `[`."""
    found = []
    for at, word in enumerate(words):
        if word in _FILE_TESTS and at + 1 < len(words):
            found.append(words[at + 1])
        elif word in ("-nt", "-ot", "-ef") and 0 < at < len(words) - 1:
            found += [words[at - 1], words[at + 1]]
    return found


def _looked_at(name: str, words: list[str], inputs: tuple[str, ...]) -> Named:
    """Return the files of a program that looks at files or compiles them."""
    decisive: list[str] = []
    is_plain = name not in ("git", "hg", "svn", "gh")
    if name in _PATTERN_FIRST:
        pairs = [at for at, word in enumerate(words) if word in _PAIRS]
        words = [
            it for at, it in enumerate(words) if not any(0 <= at - pair <= 2 for pair in pairs)
        ]
        decisive = [
            value
            for option, value in zip(words, words[1:], strict=False)
            if option in _PROGRAM_FILE
        ]
    found = operands(words, f"{_VALUES.get(name, '')} {' '.join((*_OUTPUT, *_PROGRAM_FILE))}")
    if name in _PATTERN_FIRST and not any(it.startswith(_GIVES_PATTERN) for it in words):
        found = found[1:]
    written = _written(words)
    if name in ("cp", "ln", "mv"):
        found, written = found[:-1], tuple(found[-1:])
    elif name == "tee":
        found, written = [], tuple(found)
    elif name not in _PLAIN:
        is_plain = False
    return Named([*found, *inputs], decisive, is_plain, written)


# Programs whose words are files and nothing else.
_PLAIN = frozenset(
    [
        "awk",
        "bat",
        "cat",
        "cksum",
        "comm",
        "cut",
        "egrep",
        "fgrep",
        "file",
        "gawk",
        "grep",
        "head",
        "hexdump",
        "jq",
        "less",
        "ls",
        "mawk",
        "md5sum",
        "more",
        "nawk",
        "nl",
        "od",
        "paste",
        "readlink",
        "realpath",
        "rg",
        "sed",
        "sha1sum",
        "sha256sum",
        "sha512sum",
        "shasum",
        "sort",
        "stat",
        "strings",
        "tac",
        "tail",
        "uniq",
        "wc",
        "xxd",
        "zcat",
        "zgrep",
    ]
)


def _written(words: list[str]) -> tuple[str, ...]:
    pairs = zip(words, words[1:], strict=False)
    named = [value for option, value in pairs if option in _OUTPUT]
    starts = tuple(f"{option}=" for option in _OUTPUT)
    return (*named, *(word.partition("=")[2] for word in words if word.startswith(starts)))


def _used(name: str, words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the files that a program reads, and those that it writes."""
    written, found, at = _written(words), [], 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _OUTPUT or word in (
            "-c" if name.startswith("py") else _CODE.get(name, "-c ")
        ).split(" "):
            at += word in _OUTPUT or name.startswith("py") or name in _CODE
        elif word.startswith("-") and "=" in word:
            found.append(word.partition("=")[2])
        elif not word.startswith("-"):
            found.append(word)
    return [word for word in found if word not in written], written


def operands(words: list[str], values: str = "") -> list[str]:
    """Return the words that are neither options nor the values of these options."""
    takes_value, found, at = values.split(), [], 0
    while at < len(words):
        if words[at] == "--":
            return found + words[at + 1 :]
        if words[at] in takes_value:
            at += 1
        elif not words[at].startswith("-"):
            found.append(words[at])
        at += 1
    return found
