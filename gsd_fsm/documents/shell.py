"""Read a shell command: its tokens, and the part of it that masks the exit code of the rest.

Quotes, substitutions, comments and here-documents are skipped; `set -e`, `set -o pipefail`, groups and
`sh -c` count. A compound command (`if`, `for`, `case` …) shows its failures, and so does every program
that is not known to succeed always.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

LONGEST = 8_000
_SHOWN = 60

_JOINS = re.compile(r"[|&;\n]")
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+|(?<![^\s|&;()])#[^\n]*")
_REDIRECTION = re.compile(r"\d*(?:<<<|<<-?|<>|>>|>\||[<>]&|[<>](?!\())|&>>?")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;&?|;&|[|&;()\n]")
_ASSIGNMENT = re.compile(r"\w+(?:\[[^]]*\])?\+?=")
_PREFIXES = ("builtin", "command", "env", "exec", "time")
_SHELLS = ("bash", "dash", "ksh", "sh", "zsh")
# Programs that fail only if they are used wrongly, and commands that only prepare others.
_SUCCEEDS = (
    ".", ":", "alias", "awk", "cat", "cd", "column", "cut", "date", "echo", "expand", "export", "fmt",
    "fold", "gawk", "head", "less", "local", "mawk", "more", "nl", "pr", "printf", "pv", "pwd", "rev", "sed",
    "set", "sleep", "sort", "source", "tac", "tail", "tee", "tr", "trap", "true", "ts", "umask", "uniq",
    "unset", "wc",
)  # fmt: skip
_ENDS = {
    "case": "esac", "for": "done", "if": "fi", "select": "done", "until": "done", "while": "done",
    "[[": "]]",
}  # fmt: skip
_BEFORE_COMMANDS = ("!", "do", "elif", "else", "if", "then", "until", "while", "{")


def masking_part(command: str) -> str | None:
    """Return the part that makes the command exit with 0 even if the rest of it fails, or None.

    None also for a command that cannot be read: this is only for warnings.
    """
    if len(command) > LONGEST or not _JOINS.search(command):
        return None
    try:
        result = _Reader(command).commands()
    except (IndexError, ValueError, RecursionError):  # unclosed, or nested too deep
        return None
    return None if result.fails else " ".join(result.masked.split())[:_SHOWN] or None


class _Result(NamedTuple):
    """How a part of a command ends."""

    fails: bool  # whether it can exit with another code than 0
    matters: bool = False  # whether it runs a program whose failure should be seen
    masked: str = ""  # the part that hides that failure
    passes_on: bool = False  # `exit` without a code of its own
    tolerated: bool = False  # whether `set -e` ignores its failure


class Token(NamedTuple):
    """A part of a command, as it was written."""

    kind: str  # word, redirection, operator
    text: str
    start: int
    end: int


class _Reader:
    """The tokens of a command, and the options of the shell at the place reached."""

    def __init__(self, text: str, errexit: bool = False, pipefail: bool = False) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.errexit, self.pipefail = errexit, pipefail

    def _next(self) -> str:
        """Return the operator or word at this place, "" at the end."""
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _source(self, first: int) -> str:
        """Return the text from this token to the last one that was read."""
        return self.text[self.tokens[first].start : self.tokens[self.at - 1].end]

    def commands(self, end: str = "") -> _Result:
        """Read commands up to this word or operator; the last one decides."""
        done = _Result(False)
        ends_early = False  # whether `set -e` ends the list at a failure
        while True:
            while self._next() in (";", "\n"):
                self.at += 1
            if self._next() == end:
                break
            first = self.at
            result = self._and_or()
            if self._next() == "&":
                self.at += 1
                result = _Result(False, result.matters, "&" if result.matters else "")
            elif self._next() not in (";", "\n", end):
                raise ValueError(self._next())
            if self.errexit and result.fails and not result.tolerated:
                ends_early = True
            if result.passes_on:
                continue
            masked = result.masked
            if done.matters and not result.matters and not result.fails:
                masked = done.masked or f"; {self._source(first)}"
            matters = done.matters or result.matters
            done = _Result(result.fails, matters, masked, tolerated=result.tolerated)
        if ends_early and not done.fails:
            return _Result(True, done.matters)
        return done

    def _and_or(self) -> _Result:
        done = self._pipeline()
        while (operator := self._next()) in ("&&", "||"):
            self.at += 1
            self._skip_newlines()
            first = self.at
            more = self._pipeline()
            matters = done.matters or more.matters
            if operator == "&&":
                masked, tolerated = more.masked or done.masked, done.fails or more.tolerated
                done = _Result(done.fails or more.fails, matters, masked, tolerated=tolerated)
            elif done.fails:  # otherwise the rest never runs
                masked = "" if more.fails else f"|| {self._source(first)}"
                done = _Result(more.fails, matters, masked, tolerated=more.tolerated)
        return done

    def _pipeline(self) -> _Result:
        denied = self._next() == "!"
        self.at += denied
        done = self._command()
        while self._next() in ("|", "|&"):
            self.at += 1
            self._skip_newlines()
            first = self.at
            more = self._command()
            hides = done.matters and not more.fails
            masked = f"| {self._source(first)}" if hides else more.masked
            fails = more.fails or (self.pipefail and done.fails)
            done = _Result(fails, done.matters or more.matters, masked)
        return _Result(True, done.matters, tolerated=True) if denied else done

    def _skip_newlines(self) -> None:
        while self._next() == "\n":
            self.at += 1

    def _command(self) -> _Result:
        word = self._next()
        if word in ("(", "{"):
            return self._group(word)
        if word in _ENDS:
            self._skip_compound(_ENDS[word])
            self._words()
            return _Result(True, True)
        words = self._words()
        if self._next() == "(":  # a function: what it does is seen where it is called
            self.at += 2
            self._skip_newlines()
            self._command()
            return _Result(False)
        if not words:
            raise ValueError(self._next())
        return self._simple(words)

    def _group(self, opening: str) -> _Result:
        options = self.errexit, self.pipefail
        self.at += 1
        result = self.commands(")" if opening == "(" else "}")
        self.at += 1
        if opening == "(":
            self.errexit, self.pipefail = options
            result = result._replace(tolerated=False)
        self._words()
        return result

    def _skip_compound(self, end: str) -> None:
        """Go behind the end of this compound command; a word ends it only where a command may begin."""
        before = self._next()
        self.at += 1
        while not ((word := self.tokens[self.at].text) == end and (end == "]]" or _begins(before))):
            if word in _ENDS and end != "]]" and _begins(before):
                self._skip_compound(_ENDS[word])
            else:
                self.at += 1
            before = self.tokens[self.at - 1].text
        self.at += 1

    def _words(self) -> list[str]:
        """Return the words up to the next operator, without redirections."""
        words = []
        while self.at < len(self.tokens) and self.tokens[self.at].kind != "operator":
            if self.tokens[self.at].kind == "redirection":
                self.at += 1
            else:
                words.append(self.tokens[self.at].text)
            self.at += 1
        return words

    def _simple(self, words: list[str]) -> _Result:
        rest = list(words)
        while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in _PREFIXES):
            rest.pop(0)
        if not rest:  # only assignments
            runs = any("$(" in word or "`" in word for word in words)
            return _Result(runs, runs)
        name, options = rest[0].rpartition("/")[2], rest[1:]
        if name == "set":
            self._set(options)
        if name in _SHELLS:
            return self._shell(options)
        if name in ("exit", "return"):
            given = options[0].strip('"') if options else "$?"
            return _Result(given != "0", passes_on=given == "$?")
        fails = not _always_succeeds(name, options)
        return _Result(fails, fails)

    def _shell(self, options: list[str]) -> _Result:
        """Return how the text after `-c` ends; a script decides by itself."""
        for at, option in enumerate(options):
            if re.fullmatch(r"-[a-z]*c", option):
                errexit, pipefail = "e" in option, "pipefail" in options[:at]
                errexit = errexit or any(re.fullmatch(r"-[a-z]*e[a-z]*", it) for it in options[:at])
                inner = _Reader("".join(shlex.split(options[at + 1])), errexit, pipefail)
                # For the shell outside this is one command, whatever it is made of.
                return inner.commands()._replace(tolerated=False)
        return _Result(True, True)

    def _set(self, options: list[str]) -> None:
        for option, value in zip(options, [*options[1:], ""], strict=True):
            turns_on = option[:1] == "-"
            if option[:1] not in ("-", "+"):
                continue
            if "e" in option or value == "errexit":
                self.errexit = turns_on
            if value == "pipefail":
                self.pipefail = turns_on


def _always_succeeds(name: str, options: list[str]) -> bool:
    text = " ".join(options)
    if name in ("mkdir", "rm"):
        return re.search(r"(?<!\S)(?:-\w*[fp]|--force|--parents)", text) is not None
    if name == "wait":
        return not options
    if name == "sed":
        return re.search(r"[qQ] *\d", text) is None
    return name in _SUCCEEDS and not (name.endswith("awk") and "exit" in text)


def _begins(before: str) -> bool:
    """Return whether a command may begin after this token."""
    return _OPERATOR.fullmatch(before) is not None or before in _BEFORE_COMMANDS


# tokens


def tokens(text: str) -> list[Token]:
    """Return words, redirections and operators; raise IndexError or ValueError if a quote is open."""
    found: list[Token] = []
    documents: list[str] = []  # the delimiters of here-documents that begin after this line
    at = 0
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at = blank.end()
            continue
        kind = "redirection"
        match = _REDIRECTION.match(text, at)
        if match is None:
            kind, match = "operator", _OPERATOR.match(text, at)
        end = match.end() if match else _word_end(text, at)
        if match is None:
            kind = "word"
            if found and found[-1].text.lstrip("0123456789") in ("<<", "<<-"):
                documents.append("".join(shlex.split(text[at:end])))
        found.append(Token(kind, text[at:end], at, end))
        at = end
        if found[-1].text == "\n":
            for delimiter in documents:
                at = _document_end(text, at, delimiter)
            documents = []
    return found


def _document_end(text: str, at: int, delimiter: str) -> int:
    """Return the place after the line that ends this here-document."""
    while at < len(text):
        line, _, _ = text[at:].partition("\n")
        at += len(line) + 1
        if line.lstrip("\t") == delimiter:
            break
    return at


def _word_end(text: str, at: int) -> int:
    start = at
    while at < len(text):
        opens = text[at] == "(" and at > start and text[at - 1] in "=<>"
        if text[at] in " \t\r\n|&;()" and not opens:
            break
        if text[at] in "<>" and text[at + 1 : at + 2] != "(":
            break
        at = closing_end(text, at + 1, ")") if opens else piece_end(text, at)
    return at


def piece_end(text: str, at: int, quoted: bool = False) -> int:
    """Return the end of the quotation or substitution at this place, or of one character."""
    sign = text[at]
    if sign == "\\":
        return at + 2
    if sign == "'" and not quoted:
        return text.index("'", at + 1) + 1
    if (sign == '"' and not quoted) or sign == "`":
        return closing_end(text, at + 1, sign, quoted=True)
    if sign == "$" and text[at + 1 : at + 2] in ("(", "{"):
        return closing_end(text, at + 2, ")" if text[at + 1] == "(" else "}")
    return at + 1


def closing_end(text: str, at: int, closing: str, quoted: bool = False) -> int:
    """Return the place after this closing sign."""
    while text[at] != closing:
        if closing == ")" and text[at] == "(":
            at = closing_end(text, at + 1, ")")
        else:
            at = piece_end(text, at, quoted)
    return at + 1
