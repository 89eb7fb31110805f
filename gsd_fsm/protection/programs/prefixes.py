"""Programs that start the program named by their arguments, and where its name begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

SHELLS = ("ash", "bash", "dash", "ksh", "sh", "zsh")
PYTHON = re.compile(r"(?:python|pypy)[\d.]*|py")
_ASSIGNMENT = re.compile(r"\w+=")
_VERSION = re.compile(r"(?<=.)@[^/@]+$")
# The option that names the directory of the program that is started.
_DIRECTORY = ("-C", "--chdir", "--cwd", "--dir", "--directory", "--working-directory")


class Prefix(NamedTuple):
    """How the arguments of such a program are read."""

    values: str = ""  # options that take a value
    skip: int = 0  # words before the program, behind the options
    keeps_options: bool = False  # whether its own options matter, as those of `coverage run`


_UV = (
    "-p --python --with --with-requirements --with-editable --extra --group --only-group --no-group "
    "--package --project --env-file --index --index-url --default-index -i --cache-dir --from"
)
_NPX = "-p --package -w --workspace --prefix"
# The key is a program, or a program and its first word.
PREFIXES = {
    "builtin": Prefix(),
    "bun x": Prefix(_NPX),
    "bundle exec": Prefix(),
    "bunx": Prefix(_NPX),
    "caffeinate": Prefix(),
    "chronic": Prefix(),
    "command": Prefix(),
    "conda run": Prefix("-n --name -p --prefix"),
    "coverage run": Prefix(
        "--concurrency --context --data-file --include --omit --rcfile --source",
        keeps_options=True,
    ),
    "cross-env": Prefix(),
    "direnv exec": Prefix(skip=1),
    "doas": Prefix("-u"),
    "doppler run": Prefix("-p -c --project --config"),
    "dotenv": Prefix("-e -f"),
    "dotenv run": Prefix("-e -f"),
    "env": Prefix("-u --unset"),
    "exec": Prefix("-a"),
    "faketime": Prefix("-f", skip=1),
    "flock": Prefix("-w -E", skip=1),
    "gtimeout": Prefix("-k -s --kill-after --signal", skip=1),
    "hatch run": Prefix(),
    "ionice": Prefix("-c -n"),
    "mamba run": Prefix("-n --name -p --prefix"),
    "micromamba run": Prefix("-n --name -p --prefix"),
    "mise exec": Prefix(),
    "mise x": Prefix(),
    "nice": Prefix("-n --adjustment"),
    "nohup": Prefix(),
    "npm exec": Prefix(_NPX),
    "npm x": Prefix(_NPX),
    "npx": Prefix(_NPX),
    "op run": Prefix("--env-file"),
    "pdm run": Prefix("-p --project"),
    "pipenv run": Prefix(),
    "pipx run": Prefix("--spec --python"),
    "pixi run": Prefix("-e --environment --manifest-path"),
    "pnpm dlx": Prefix(_NPX),
    "pnpm exec": Prefix("-F --filter"),
    "poetry run": Prefix("-P --project"),
    "rye run": Prefix(),
    "setsid": Prefix(),
    "stdbuf": Prefix("-i -o -e"),
    "sudo": Prefix("-u -g -C -h -p"),
    "time": Prefix("-f -o --format --output"),
    "timeout": Prefix("-k -s --kill-after --signal", skip=1),
    "uv run": Prefix(_UV),
    "uv tool run": Prefix(_UV),
    "uvx": Prefix(_UV),
    "xargs": Prefix("-I -n -P -L -d -a -E -s --max-args --max-procs --delimiter --arg-file"),
    "xvfb-run": Prefix("-s -n -e -f -w --server-args --server-num --error-file"),
    "yarn dlx": Prefix(_NPX),
    "yarn exec": Prefix(),
}
_MANAGERS = {key.partition(" ")[0] for key in PREFIXES if " " in key}


class Started(NamedTuple):
    """What the words of a command start: a prefix, and behind it another program."""

    own: tuple[str, ...]  # the arguments of the prefix itself
    words: tuple[str, ...]  # the program behind it and its arguments
    is_module: bool = False  # whether that is a module of Python and not a program
    directory: str = ""  # where it runs, seen from where the prefix runs


def base_name(program: str) -> str:
    """Return the name of a program without its directory, its version and the ending of Windows."""
    name = _VERSION.sub("", program)
    name = name.rpartition("/")[2]
    return re.sub(r"(?i)\.(?:exe|cmd|bat)$", "", name)


def started_by(words: Sequence[str]) -> Started | None:
    """Return what is started by the arguments of a program, None if it does not start another."""
    name = base_name(words[0])
    if PYTHON.fullmatch(name):
        return _module(words, 1)
    key, begins = _key(name, words)
    if key not in PREFIXES or (name == "command" and words[1:2] in (["-v"], ["-V"])):
        return None
    prefix = PREFIXES[key]
    values = prefix.values.split()
    at, directory = begins, _directory(words[1:begins])
    skip = prefix.skip
    while at < len(words):
        word = words[at]
        if key != "dotenv" and word in ("-m", "--module") and name in ("coverage", "uv"):
            return Started(tuple(words[1:at]), tuple(words[at + 1 :]), True, directory)
        if word in ("-c", "--call") and key in ("npx", "npm exec", "npm x"):
            return Started(tuple(words[1:at]), ("sh", *words[at:]), False, directory)
        if word == "--":
            at += 1
        elif word in _DIRECTORY:
            directory = words[at + 1] if at + 1 < len(words) else ""
            at += 2
        elif word in values:
            at += 2
        elif word.startswith(tuple(f"{it}=" for it in _DIRECTORY)):
            directory = word.partition("=")[2]
            at += 1
        elif word.startswith("-") or _ASSIGNMENT.match(word):
            at += 1
        elif skip:
            at, skip = at + 1, skip - 1
        else:
            break
    return Started(tuple(words[1:at]), tuple(words[at:]), False, directory)


def _key(name: str, words: Sequence[str]) -> tuple[str, int]:
    """Return the key of PREFIXES, and where the arguments behind it begin."""
    if name in _MANAGERS:
        at = 1
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            at += 2 if words[at] in _DIRECTORY else 1
        for length in (2, 1):
            key = " ".join((name, *words[at : at + length]))
            if key in PREFIXES and key != name:
                return key, at + length
    return name, 1


def _directory(options: Sequence[str]) -> str:
    """Return the value of the option that names a directory, "" without it."""
    for at, option in enumerate(options):
        name, _, value = option.partition("=")
        if name in _DIRECTORY:
            return value or "".join(options[at + 1 : at + 2])
    return ""


def _module(words: Sequence[str], at: int) -> Started | None:
    """Return the module that Python runs, None if it runs a file or a text."""
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        if option.startswith("--") or option == "-c":
            return None
        if "m" in option[1:] and not option.startswith(("-W", "-X")):
            attached = option.partition("m")[2]
            rest = words[at + 1 :]
            return Started((), (attached, *rest) if attached else tuple(rest), is_module=True)
        at += 2 if option in ("-W", "-X") else 1
    return None
