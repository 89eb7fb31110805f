"""Run git: without side effects to read, without hooks to save, and as the user would to commit."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gsd_fsm.config.search_path import Place, find_programs
from gsd_fsm.core.errors import CannotWrite

if TYPE_CHECKING:
    from collections.abc import Callable

    from gsd_fsm.core.errors import GsdError
    from gsd_fsm.evidence.process_tree import ProcessTree

Done = subprocess.CompletedProcess[bytes]

WITHOUT_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
# Settings of the repository must not hide a change that keeps size and time of the file.
ALL_FACTS = ("-c", "core.trustctime=true", "-c", "core.checkStat=default")
# They must not start programs or transports either, and a bare repository among the files must not
# be taken for the one that contains them.
HARMLESS = (
    *("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit", "--no-pager"),
    *WITHOUT_HOOKS,
    *ALL_FACTS,
)
QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none"}
MISLEADING = re.compile(
    "GIT_(?!EXEC_PATH|CEILING_|DISCOVERY_|CONFIG_(?!PARAMETERS)|AUTHOR_|COMMITTER_|SSH|ASKPASS)"
)
NO_WORK_TREE = re.compile(
    rb"not a git repository \(or any|must be run in a work tree|cannot use bare repository"
)
EXCEPTION = re.compile(r"git config --global --add safe\.directory .+")
ACTING_SECONDS = 600.0  # the user's hooks may run whole test suites
SLICE_SECONDS = 0.1  # Windows delivers Ctrl-C only between two waits
MAX_ERROR_TEXT = 2_000


class WorkTree(NamedTuple):
    program: str
    top: Path
    algorithm: str


def git_program(start: Place) -> str | None:
    """Return git from an absolute directory of PATH, never from this project; None if missing."""
    return next(find_programs(start, "git"), None)


def git_around(where: Place) -> str | None:
    """Return git if this directory, or one above it, has a `.git`, else None: git is slower to say no."""
    real = Path(os.path.realpath(where))
    has_git = any(os.path.lexists(above / ".git") for above in (real, *real.parents))
    return git_program(where) if has_git else None


def find_work_tree(where: Path, error: Callable[[str], GsdError]) -> WorkTree | None:
    """Return the work tree around this directory; None without git or a work tree."""
    program = git_around(where)
    return work_tree_around(program, where, error) if program else None


def work_tree_around(
    program: str, where: Path, error: Callable[[str], GsdError]
) -> WorkTree | None:
    """Return the work tree that git finds around this directory; None without one."""
    done = read(program, where, "rev-parse", "--show-object-format", "--show-toplevel")
    if done.returncode and NO_WORK_TREE.search(done.stderr):
        return None
    algorithm, top = output(done, error).split(b"\n", 1)
    known = "sha256" if algorithm == b"sha256" else "sha1"
    return WorkTree(program, Path(os.fsdecode(top.removesuffix(b"\n"))), known)


def read(
    program: str, where: Path, *arguments: str, stdin: bytes = b"", index: Path | None = None
) -> Done:
    """Run a command that only reads, or that writes only objects and this index.

    Of the programs that the repository names, only filters are started.
    """
    command = [program, "-C", str(where), *HARMLESS, *arguments]
    environment = {**_environment(index), **QUIET}
    return subprocess.run(command, input=stdin, capture_output=True, check=False, env=environment)


def read_all(
    program: str, where: Path, *commands: tuple[str, ...], index: Path | None = None
) -> list[Done]:
    """Run several commands as `read` does, at the same time."""
    environment = {**_environment(index), **QUIET}
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [program, "-C", str(where), *HARMLESS, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environment,
                )
            )
            for arguments in commands
        ]
        printed = [process.communicate() for process in running]
    return [
        Done(it.args, it.returncode, *texts) for it, texts in zip(running, printed, strict=True)
    ]


def act(
    program: str,
    where: Path,
    *arguments: str,
    stdin: bytes = b"",
    seconds: float = ACTING_SECONDS,
    index: Path | None = None,
) -> Done:
    """Run a command that writes, with the user's hooks and without a terminal.

    It uses the user's index, or this one. A timeout or Ctrl-C also ends the programs that it
    started.
    """
    import tempfile

    from gsd_fsm.evidence.process_tree import ProcessTree

    command = [program, "-C", str(where), "--no-pager", *arguments]
    # Files instead of pipes: a background process of a hook would keep a pipe open.
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        try:
            tree = ProcessTree(
                command, stdin=given, stdout=out, stderr=err, env=_environment(index)
            )
        except OSError as error:
            raise CannotWrite(f"cannot run git: {error.strerror}", "Run: git --version") from error
        with tree.process:
            _wait(tree, seconds)
        out.seek(0)
        err.seek(0)
        return Done(command, tree.process.returncode, out.read(), err.read())


def output(done: Done, error: Callable[[str], GsdError]) -> bytes:
    """Return what git printed; if it failed, raise this error with its output."""
    if done.returncode:
        raise error(error_text(done))
    return done.stdout


def error_text(done: Done) -> str:
    """Return the error output of git or a hook, redacted and truncated."""
    from gsd_fsm.documents.journal_text import redact_and_truncate
    from gsd_fsm.evidence.checks import ESCAPES

    message = (done.stderr.strip() or done.stdout.strip())[-16 * MAX_ERROR_TEXT :]
    plain = ESCAPES.sub("", message.decode("utf-8", "replace").replace("\r\n", "\n")).strip()
    return redact_and_truncate(plain, MAX_ERROR_TEXT) or f"exit code {done.returncode}"


def remedy(message: str) -> str:
    """Return the hint for an error of git: the command that git names for a directory of others."""
    found = EXCEPTION.search(message)
    return f"Run: {found[0] if found else 'git status'}"


def _environment(index: Path | None) -> dict[str, str]:
    """Return our environment without variables that point git to another repository or index."""
    found = {**os.environ, "LANGUAGE": "C"}
    for name in [it for it in found if it.startswith("GIT_") and MISLEADING.match(it)]:
        del found[name]
    return found if index is None else {**found, "GIT_INDEX_FILE": str(index)}


def _wait(tree: ProcessTree, seconds: float) -> None:
    from gsd_fsm.evidence.checks import STOP_SECONDS

    try:
        if not _ended_within(tree.process, seconds):
            raise CannotWrite(
                f"git did not finish within {seconds:g} seconds and was stopped",
                "Check the hooks and the signing program of this repository.",
            )
    except BaseException:
        try:
            tree.end(deadly=False)  # git removes its locks
            _ended_within(tree.process, STOP_SECONDS)
        finally:
            tree.end(deadly=True)
        raise
    finally:
        tree.release()


def _ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(SLICE_SECONDS, seconds))
    return process.poll() is not None
