"""Split a shell command into its simple commands: what each starts, names, reads and writes, and where."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from gsd_fsm.documents.shell import LONGEST, Token, closing_end, piece_end, tokens
from gsd_fsm.protection.files import normal
from gsd_fsm.protection.programs.prefixes import SHELLS, base_name, started_by

LONGEST_SCRIPT = 32_000
_DEEPEST = 8
_MOST = 1_000  # commands and turns of loops
_LONGEST_VALUE = 4_000  # each of many assignments may double a value
_UNKNOWN = "$()"
_ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
_NAME = re.compile(r"\$(\w+|[@*])")
_PARAMETER = re.compile(r"(\w+|[@*])(?:\[[^]]*\])?(?::?[-=](.*)|(%/\*))?", re.DOTALL)
_DECLARES = ("declare", "export", "local", "readonly", "typeset")
_KEYWORDS = (
    "!", "do", "done", "elif", "else", "esac", "fi", "function", "if", "then", "until", "while", "{", "}",
)  # fmt: skip
_SPLIT = "\0"  # where an unquoted value is split into words


class Command(NamedTuple):
    """One program that a command starts."""

    program: str  # as it was written; "" for a redirection without a program
    arguments: tuple[str, ...] = ()
    directory: str | None = ""  # where it runs, relative to the project; None: unknown or outside
    inputs: tuple[str, ...] = ()  # files of redirections
    outputs: tuple[str, ...] = ()
    is_module: bool = False  # started as a module of Python

    @property
    def name(self) -> str:
        return base_name(self.program)


def simple_commands(
    text: str,
    directory: str | None = "",
    root: str = "",
    *,
    parameters: Sequence[str] = (),
    longest: int = LONGEST,
) -> list[Command]:
    """Return the simple commands of a shell command, those of its substitutions first.

    `parameters` are `$0`, `$1` and so on. Return those that were understood; none if the text is
    longer than `longest` or a quote is open. What depends on an unknown variable keeps its "$".
    """
    reader = _Reader(directory, root, parameters)
    if len(text) <= longest:
        reader.read(text)
    return reader.commands


class _Reader:
    """The directory and the variables at the place reached, and the commands before it."""

    def __init__(self, directory: str | None, root: str, parameters: Sequence[str]) -> None:
        self.directory, self.root, self.parameters = directory, root, parameters
        self.variables: dict[str, str] = {}
        self.stack: list[str | None] = []  # of pushd
        self.functions: set[str] = set()
        self.commands: list[Command] = []
        self.depth = self.turns = 0

    def read(self, text: str) -> None:
        """Add the commands of a text; a text that cannot be read has none."""
        if self.depth >= _DEEPEST:
            return
        self.depth += 1
        with contextlib.suppress(IndexError, ValueError, RecursionError):  # unclosed, or too deep
            _Walk(self, tokens(text)).run()
        self.depth -= 1

    def read_apart(self, text: str) -> list[Command]:
        """Add the commands of a text that runs in a shell of its own, and return them."""
        directory, variables, before = self.directory, self.variables.copy(), len(self.commands)
        self.read(text)
        self.directory, self.variables = directory, variables
        return self.commands[before:]

    # simple commands

    def simple(self, words: list[str], inputs: list[str], outputs: list[str]) -> None:
        """Add the command of these words as they were written, or carry out what it changes."""
        assigned = []
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            assigned.append((found[1], self.value(found[2])))
            words.pop(0)
        expanded = [it for word in words for it in self.expand(word)]
        files = tuple(self._files(inputs)), tuple(self._files(outputs))
        if not expanded:
            self.variables.update(assigned)
            if any(files):
                self._add("", (), files)
        elif expanded[0] in _DECLARES:
            pairs = (word.partition("=") for word in expanded[1:] if "=" in word)
            self.variables.update((name, value) for name, _, value in pairs)
        elif expanded[0] in ("cd", "pushd", "popd"):
            self._change(expanded)
        elif expanded[0] not in self.functions:
            self._start(expanded, files)

    def _files(self, words: list[str]) -> list[str]:
        return [it for word in words for it in self.expand(word)]

    def _add(
        self,
        program: str,
        arguments: Sequence[str],
        files: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
        *,
        is_module: bool = False,
    ) -> None:
        if len(self.commands) < _MOST:
            command = Command(program, tuple(arguments), self.directory, *files, is_module)
            self.commands.append(command)

    def _change(self, words: list[str]) -> None:
        """Change the directory as `cd`, `pushd` and `popd` do."""
        if words[0] == "popd":
            self.directory = self.stack.pop() if self.stack else None
            return
        if words[0] == "pushd":
            self.stack.append(self.directory)
        named = [word for word in words[1:] if word == "-" or not word.startswith("-")]
        self.directory = None if named[:1] in ([], ["-"]) else self.locate(named[0])

    def locate(self, path: str) -> str | None:
        """Return a directory relative to the project; None if it is outside or unknown."""
        if "$" in path or path.startswith("~"):
            return None
        if path.startswith("/"):
            return normal("", posixpath.relpath(path, self.root)) if self.root else None
        return None if self.directory is None else normal(self.directory, path)

    def _start(self, words: Sequence[str], files: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
        """Add the program of these words, and the program that it starts itself."""
        directory, is_module = self.directory, False
        while words:
            name = base_name(words[0])
            if name == "eval":
                self.read(" ".join(words[1:]))
                break
            if name in SHELLS and (text := _text_of_shell(words)) is not None:
                self._add(words[0], (), files)
                parameters, self.parameters = self.parameters, text[1:] or self.parameters
                self.read_apart(text[0])
                self.parameters = parameters
                break
            started = started_by(words)
            if started is None or not started.words:
                self._add(words[0], words[1:], files, is_module=is_module)
                break
            self._add(words[0], started.own, is_module=is_module)
            if started.directory:
                self.directory = self.locate(started.directory)
            words, is_module = list(started.words), started.is_module
            if not is_module and words[0].endswith(".py") and name in ("coverage", "uv"):
                words.insert(0, "python")
        self.directory = directory

    # words

    def expand(self, raw: str) -> list[str]:
        """Return the words that the shell makes of a word as it was written."""
        if raw.strip('"') in ("$@", "$*", "${@}", "${*}"):
            return list(self.parameters[1:])
        return [it for it in self.value(raw).split(_SPLIT) if it]

    def value(self, raw: str, *, quoted: bool = False) -> str:
        """Return the text of a word without its quotes, with the values of known variables."""
        pieces, at = [], 0
        while at < len(raw):
            piece, at = self._piece(raw, at, quoted=quoted)
            pieces.append(piece)
        value = "".join(pieces)
        return value if len(value) <= max(_LONGEST_VALUE, len(raw)) else _UNKNOWN

    def _piece(self, raw: str, at: int, *, quoted: bool) -> tuple[str, int]:
        if not quoted and raw[at : at + 2] in ("<(", ">("):
            end = closing_end(raw, at + 2, ")")
            self.read_apart(raw[at + 2 : end - 1])
            return _UNKNOWN, end
        if not quoted and raw[at : at + 2] == "$'":
            at += 1
        end = piece_end(raw, at, quoted)
        piece = raw[at:end]
        value: str | None = None
        if piece[0] == "\\":
            keeps = quoted and piece[1:] not in ("$", "`", '"', "\\", "\n")
            return (piece if keeps else piece[1:].strip("\n")), end
        if piece[0] in "'\"" and not (quoted and end == at + 1):
            inner = piece[1:-1]
            return (inner if piece[0] == "'" else self.value(inner, quoted=True)), end
        if piece.startswith("$(("):
            return _UNKNOWN, end
        if piece.startswith(("$(", "`")):
            value = self._substituted(piece.removeprefix("$")[1:-1])
        elif piece.startswith("${"):
            value = self._parameter(piece[2:-1])
        elif piece == "$" and (found := _NAME.match(raw, at)):
            end = found.end()
            value = self._parameter(found[1])
        if value is None:
            return piece, end
        return (value if quoted or "$" in value else re.sub(r"\s+", _SPLIT, value)), end

    def _parameter(self, text: str) -> str:
        found = _PARAMETER.fullmatch(text)
        value = None
        if found:
            name = "0" if found[1] == "BASH_SOURCE" else found[1]
            value = self._variable(name)
            if not value and found[2] is not None:
                value = self.value(found[2], quoted=True)
            elif value and found[3]:
                value = posixpath.dirname(value) or "."
        return f"${text}" if value is None else value

    def _variable(self, name: str) -> str | None:
        if name in ("@", "*"):
            return " ".join(self.parameters[1:])
        if name.isdigit():
            place = int(name[:4])
            return self.parameters[place] if place < len(self.parameters) else ""
        if name == "PWD" and self.directory is not None and self.root:
            return posixpath.join(self.root, self.directory)
        return self.variables.get(name)

    def _substituted(self, text: str) -> str:
        """Return the output of a command if it is a known path, else a text with "$"."""
        found = self.read_apart(text)
        last = found[-1] if found else Command("")
        words = [word for word in last.arguments if not word.startswith("-")]
        if last.program == "pwd" and last.directory is not None and self.root:
            return posixpath.normpath(posixpath.join(self.root, last.directory))
        if len(found) == 1 and last.program == "git" and "--show-toplevel" in last.arguments:
            return self.root or _UNKNOWN
        if last.program == "dirname" and len(words) == 1:
            return posixpath.dirname(words[0]) or "."
        if last.program in ("readlink", "realpath") and len(words) == 1:
            return words[0]
        return _UNKNOWN


def _text_of_shell(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the text that a shell gets with `-c`, and its parameters; None if it runs a file."""
    at, has_text = 1, False
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] not in ("-", "--"):
        option = words[at]
        if not option.startswith("--"):
            has_text = has_text or "c" in option
            at += option.count("o")
        at += 1
    return tuple(words[at:]) if has_text and at < len(words) else None


class _Walk:
    """The tokens of one text, and the compound commands that are open at the place reached."""

    def __init__(self, reader: _Reader, found: list[Token]) -> None:
        self.reader, self.tokens, self.at = reader, found, 0
        self.groups: list[str | None] = []  # the directory before each "("
        self.loops: list[tuple[int, str, list[str]]] = []  # begin, variable, values left
        self.expects_pattern = False  # of `case`

    def run(self) -> None:
        while self.at < len(self.tokens) and self.reader.turns < _MOST:
            self.reader.turns += 1
            if self.expects_pattern:
                self._skip_pattern()
                continue
            begin, end = self.at, self._end()
            operator = self.tokens[end].text if end < len(self.tokens) else ""
            self.at = end + 1
            self._segment(self.tokens[begin:end], operator)
            if operator == ")" and self.groups:
                self.reader.directory = self.groups.pop()
            if operator in (";;", ";&", ";;&"):
                self.expects_pattern = True

    def _end(self) -> int:
        """Return the place of the next operator; those between "[[" and "]]" are words."""
        in_test = False
        for at in range(self.at, len(self.tokens)):
            text = self.tokens[at].text
            in_test = text == "[[" or (in_test and text != "]]")
            if self.tokens[at].kind == "operator" and not in_test:
                return at
        return len(self.tokens)

    def _skip_pattern(self) -> None:
        while self.tokens[self.at].text == "\n":
            self.at += 1
        self.expects_pattern = False
        if self.tokens[self.at].text != "esac":
            while self.tokens[self.at].text != ")":
                self.at += 1
            self.at += 1

    def _segment(self, found: list[Token], operator: str) -> None:
        """Read what lies between two operators."""
        words, inputs, outputs = _without_redirections(found)
        while words and words[0] in _KEYWORDS:
            keyword = words.pop(0)
            if keyword in ("while", "until"):
                self.loops.append((0, "", []))
            elif keyword == "done":
                self._next_turn()
            elif keyword == "function" and words:
                self.reader.functions.add(words.pop(0))
        first = words[0] if words else ""
        if first in ("for", "select"):
            self._loop(words, operator)
        elif first == "case":
            self._case(found)
        elif operator == "(" and words:  # a function; its body is read as if it ran here
            self.reader.functions.add(first)
            self.at += 1
        else:
            if words or inputs or outputs:
                self.reader.simple(words, inputs, outputs)
            if operator == "(":
                self.groups.append(self.reader.directory)

    def _case(self, found: list[Token]) -> None:
        place = [token.text for token in found].index("in")
        self.at -= len(found) - place
        self.expects_pattern = True

    def _loop(self, words: list[str], operator: str) -> None:
        """Begin a loop; its body is read once for each value."""
        values = [it for word in words[3:] for it in self.reader.expand(word)]
        name = words[1] if len(words) > 1 else ""
        if values:
            self.reader.variables[name] = values.pop(0)
        if operator == "(":  # for ((…))
            while self.tokens[self.at].text != "do":
                self.at += 1
        self.loops.append((self.at, name, values))

    def _next_turn(self) -> None:
        if not self.loops:
            return
        begin, name, values = self.loops[-1]
        if values:
            self.reader.variables[name] = values.pop(0)
            self.at = begin
        else:
            self.loops.pop()


def _without_redirections(found: list[Token]) -> tuple[list[str], list[str], list[str]]:
    """Return words, input files and output files, as they were written."""
    words: list[str] = []
    inputs: list[str] = []
    outputs: list[str] = []
    sign = ""
    for token in found:
        if token.kind == "redirection":
            sign = token.text.lstrip("0123456789")
        elif not sign:
            words.append(token.text)
        else:
            is_file = not (sign.endswith("&") and re.fullmatch(r"\d+|-", token.text))
            if sign in ("<", "<>"):
                inputs.append(token.text)
            elif is_file and not sign.startswith("<"):
                outputs.append(token.text)
            sign = ""
    return words, inputs, outputs
