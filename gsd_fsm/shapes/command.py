"""Commands among words: which part of an entry can be run, and whether running it proves the entry.

Guessing wrong costs either way: a sentence that is run proves nothing, and a command that is not
seen leaves a criterion to somebody's word. What is not certain is therefore told.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

# A code span; the second form may hold single backticks.
SPAN = re.compile(r"``(?:(?!``).)+``|`[^`]+`")
_PROGRAMS = frozenset((
    "!", "[", "act", "actionlint", "ansible-lint", "ava", "awk", "bandit", "bash", "bats", "bazel",
    "biome", "black", "bun", "bundle", "bunx", "cabal", "cargo", "cat", "cmake", "cmp", "composer",
    "coverage", "ctest", "curl", "cypress", "dart", "deno", "diff", "docker", "docker-compose",
    "dotnet", "dune", "egrep", "env", "eslint", "fgrep", "find", "flake8", "flutter", "gh", "git",
    "go", "golangci-lint", "gradle", "gradlew", "grep", "gsd-fsm", "hadolint", "hatch", "head",
    "helm", "hyperfine", "isort", "jest", "jq", "just", "k6", "kubectl", "lein", "ls", "make",
    "markdownlint", "meson", "mise", "mix", "mkdocs", "mocha", "mvn", "mvnw", "mypy", "ninja",
    "nix", "node", "nox", "npm", "npx", "nx", "nyc", "openssl", "oxlint", "pdm", "php", "phpstan",
    "phpunit", "pip", "pipenv", "playwright", "pnpm", "podman", "poetry", "pre-commit", "prettier",
    "psql", "pylint", "pyright", "pytest", "python", "python3", "rake", "redis-cli", "rg", "rspec",
    "rubocop", "ruby", "ruff", "rustc", "rye", "sbt", "sed", "sh", "shellcheck", "sphinx-build",
    "sqlfluff", "sqlite3", "stack", "stat", "stylelint", "swift", "systemctl", "tail", "terraform",
    "test", "time", "timeout", "tox", "trivy", "tsc", "turbo", "uv", "uvx", "vitest", "wc", "wget",
    "xcodebuild", "yamllint", "yarn", "zig", "zsh",
))  # fmt: skip
# Of these the bare name is a command; of the others it is a word of a sentence.
_BARE = frozenset((
    "eslint", "flake8", "gradle", "jest", "make", "mocha", "mypy", "ninja", "nox", "phpunit",
    "pylint", "pyright", "pytest", "rake", "rspec", "rubocop", "tox", "tsc", "vitest",
))  # fmt: skip
# Words of everyday language: without backticks they need a subcommand or an option beside them.
_EVERYDAY = frozenset((
    "!", "[", "act", "ava", "black", "bundle", "cat", "composer", "coverage", "cypress", "dart",
    "diff", "docker", "dune", "env", "find", "flutter", "git", "go", "head", "helm", "just", "make",
    "meson", "mise", "mix", "node", "playwright", "podman", "poetry", "prettier", "python", "ruby",
    "rye", "stack", "stat", "swift", "tail", "terraform", "test", "time", "timeout", "yarn",
))  # fmt: skip
_SUBCOMMAND = re.compile(
    r"(?:act|bundle|composer|coverage|cypress|dart|docker|dune|flutter|go|helm|just|make|meson|mise"
    r"|mix|playwright|podman|poetry|rye|stack|swift|terraform|yarn)"
    r" (?:all|audit|build|check|ci|compile|exec|fmt|install|lint|report|run|test|typecheck|validate|verify|vet)"
    r"(?: \S+){0,2}|make [a-z][\w-]*"
)
_OWN = re.compile(r"(?:\.{1,2}/|~/|(?:\.?venv|bin|scripts?|tools?|node_modules|vendor)/)\S+$")
_SCRIPT = re.compile(r"\S+\.(?:sh|bash|zsh|ps1)$")
_SETS = re.compile(r"[A-Za-z_]\w*=\S*$")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_OPERATOR = re.compile(r"&&|\|\|?|;|\$\(|[0-9&]?>>?|(?:^|\s)-{1,2}\w|(?<=\s)\.{1,2}/")
_PROSE = re.compile(
    r"(?:^|\s)(?:the|that|this|is|are|be|sure|to|an?|and|or|it|its|of|should|must|no|not|pass(?:es|ed)?"
    r"|succeeds?|works?|when|user|by|in|on|with)(?=[\s.,;:]|$)|,\s"
)

# What may stand between words and a command that belongs to them.
_LINK = re.compile(r"(?:[:=→|(—–-]|=>|->)\s*$")
_RUN = re.compile(
    r"(?:^|\b)(?:run(?:ning|s)?|execut(?:e|es|ing)|via|with|by|using|command|verify|check|confirm)\s*$",
    re.IGNORECASE,
)
_NEVER = re.compile(
    r"\b(?:no|not|never|without|avoid|forbid(?:s|den)?|instead|nobody)\b|n['’]t\b", re.IGNORECASE
)
_PASSES = re.compile(
    r"\W*(?:(?:must|should|will|all|is|are|it|and|everything|see|observe|expect|get) )*"
    r"(?:pass(?:es|ing)?|succeeds?|green|clean(?:ly)?|works?|completes?|ok\b|runs? clean"
    r"|(?:exits?|returns?)(?: with)?(?: an?)?(?: exit)?(?: code| status)? ?(?:of )?(?:0|zero|success)\b"
    r"|(?:has |have |with |shows? |reports? )?(?:0|no|zero|without) (?:\w+ )?(?:failures?|errors?|warnings?|issues?|problems?|regressions?))",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"[\s)→—–:,;-]*(?:[<>≤≥=]|\d"
    r"|(?:\w+ ){0,3}(?:returns?|outputs?|prints?|shows?|lists?|finds?|reports?|contains?|equals?|empty"
    r"|nothing|none|under|below|above|less|more|fewer|most|least|exceeds?|fails?|no)\b)",
    re.IGNORECASE,
)
# A name and its arguments: what stands alone behind a colon may be a program that nobody knows here.
_CALL = re.compile(r"(?:[A-Z_][A-Z0-9_]*=\S*\s+)*[a-z0-9_./~-][\w./~-]*\s+[^=:\s]")
_EDGE = " \t:;,.=→|(—–->"
_BETWEEN = re.compile(r":\**\s+|\s(?:→|=>|->|[—–=-])\s")
_LOOKS = 8  # as many places as an honest entry has; each costs a look at all of it
_LINKED_TEXT = re.compile(r"!?\[([^\[\]\n]{1,300})\]\([^()\n]{0,500}\)")
_EMPHASIS = re.compile(
    r"\*{1,3}(?=\S)([^*\n]+?)(?<=\S)\*{1,3}|(?<!\w)_{1,3}(?=\S)([^_\n]+?)(?<=\S)_{1,3}(?!\w)"
)


class Reading(NamedTuple):
    """What an entry says: its name, its command if it has one, and the doubt that prevented one."""

    name: str
    command: str | None = None
    doubt: str = ""


def plain(text: str) -> str:
    """The words of a Markdown text, without its marks, on one line."""
    text = _LINKED_TEXT.sub(r"\1", text)
    text = SPAN.sub(lambda span: code_of(span[0]), text)
    return " ".join(_EMPHASIS.sub(lambda found: found[1] or found[2], text).split())


def code_of(span: str) -> str:
    """What stands between backticks, without the prompt of a shell."""
    return span.strip("`").strip().removeprefix("$ ")


def read_entry(text: str, *, proves: bool) -> Reading:
    """The entry, taken apart; `proves`: it stands where commands are expected."""
    spans = list(islice(SPAN.finditer(text), _LOOKS))
    if not spans:
        return _read_words(text) if proves else Reading(plain(text))
    for span in spans:
        before, after = text[: span.start()], text[span.end() :]
        code = code_of(span[0])
        if _NEVER.search(before) or not _belongs(before, code, after, proves=proves):
            continue
        if _CONDITION.match(after) and not _PASSES.match(after):
            doubt = f"{code!r} may succeed without {plain(after).strip(' .;,')!r}"
            return Reading(plain(text), None, doubt)
        command = _joined(code, spans, span)
        return Reading(_name(before) or command, command)
    return Reading(plain(text), None, _passed_over(text, spans[-1]))


def _passed_over(text: str, span: re.Match[str]) -> str:
    """The doubt about a last code span that looks like a command of a program that nobody knows."""
    code, alone = code_of(span[0]), not text[span.end() :].strip(" .;,)")
    if alone and _LINK.search(text[: span.start()]) and _CALL.match(code):
        return f"{code!r} is not run: under a heading for verification it would be"
    return ""


def _name(before: str) -> str:
    """What stands before a command, without the words that only announce it."""
    return _RUN.sub("", plain(before).strip(_EDGE)).strip(_EDGE).strip("*")


def _belongs(before: str, code: str, after: str, *, proves: bool) -> bool:
    """Whether this code span is the command of its entry, and not a name in a sentence."""
    ahead, behind = plain(before).strip(), plain(after).strip(" .;,)")
    if not ahead and not behind:
        return proves or is_command(code)
    linked = bool(_LINK.search(before) or _RUN.search(before) or _PASSES.match(after) or not ahead)
    if _LINK.search(before) and not behind and proves and _CALL.match(code):
        return True
    return is_command(code) and (linked or (proves and " " in code))


def _joined(code: str, spans: list[re.Match[str]], this: re.Match[str]) -> str:
    """The command, with those that the entry wants as well: `a` and `b`."""
    commands, end = [code], this.end()
    for span in spans[spans.index(this) + 1 :]:
        between = this.string[end : span.start()]
        if not re.fullmatch(r"\s*(?:and|then|and then|,|\+|&|&&|, and|, then)\s*", between):
            break
        if not is_command(code_of(span[0])):
            break
        commands.append(code_of(span[0]))
        end = span.end()
    return " && ".join(commands)


def _read_words(text: str) -> Reading:
    """An entry without code spans: `name: command`, a bare command, or just words."""
    bare = text.strip().removeprefix("$ ")
    if is_told(bare):
        return Reading(bare, bare)
    for link in islice(_BETWEEN.finditer(bare), _LOOKS):
        command = bare[link.end() :].strip()
        if is_told(command):
            return Reading(_name(bare[: link.start()]) or command, command)
    return Reading(plain(text))


def read_method(name: str, method: str, *, certain: bool = False) -> Reading:
    """A name with what stands in the place of its command: a cell of a table, a value of a key."""
    name, method = plain(name), method.strip()
    if SPAN.search(method) and not (certain and not SPAN.fullmatch(method)):
        found = read_entry(method, proves=True)
        return found._replace(name=name or found.name)
    command = method.removeprefix("$ ")
    if certain or is_told(command) or _is_shell(command):
        return Reading(name or command, command)
    return Reading(name)


def _first_word(words: list[str]) -> int:
    return next((at for at, word in enumerate(words) if not _SETS.match(word)), 0)


def is_command(text: str) -> bool:
    """Whether this is a command beyond doubt: a known program, or one of the project's own."""
    words = text.split()
    if not words or _PROSE.search(_QUOTED.sub("", text)):
        return False
    at = _first_word(words)
    program, alone = words[at], len(words) == at + 1
    if _SCRIPT.match(program) or (_OWN.match(program) and (not alone or "." not in program[2:])):
        return True
    return program in (_BARE if alone else _PROGRAMS)


def is_told(text: str) -> bool:
    """Whether this is a command even without backticks, and no sentence that begins like one."""
    if not is_command(text):
        return False
    words = text.split()[_first_word(text.split()) :]
    everyday = words[0] in _EVERYDAY
    return not everyday or bool(_SUBCOMMAND.fullmatch(" ".join(words)) or _OPERATOR.search(text))


def _is_shell(text: str) -> bool:
    """Whether this can be a command of a program that nobody knows here."""
    unquoted = _QUOTED.sub("", text)
    return bool(_CALL.match(text) and _OPERATOR.search(unquoted)) and not _PROSE.search(unquoted)
