"""Running git: quietly to read, and as the user would to act."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

from gsd_fsm.core.errors import CannotWrite

Done = subprocess.CompletedProcess[bytes]

# A repository's own settings must start no program and no transport, and a bare repository
# lying among the files must not pose as the one that holds them.
HARMLESS = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit", "--no-pager")
QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none"}
MISLEADING = re.compile(
    "GIT_(?!EXEC_PATH|CEILING_|DISCOVERY_|CONFIG_(?!PARAMETERS)|AUTHOR_|COMMITTER_|SSH|ASKPASS)"
)
NO_WORK_TREE = re.compile(
    rb"not a git repository \(or any|must be run in a work tree|cannot use bare repository"
)
ACTING_SECONDS = 600.0  # hooks of the user may run whole test suites
STOP_SECONDS = 2.0  # from the polite signal, at which git removes its locks, to the deadly one
SLICE_SECONDS = 0.1  # Windows delivers Ctrl-C only between two waits
MOST_WORDS = 2_000


def git_program() -> str | None:
    """Find git on PATH only: Windows would also start a git.exe that lies in the project."""
    name = "git.exe" if os.name == "nt" else "git"
    places = (Path(folder) / name for folder in os.get_exec_path())
    runnable = (it for it in places if it.is_absolute() and os.access(it, os.X_OK) and it.is_file())
    return next(map(str, runnable), None)


def read(program: str, where: Path, *arguments: str, stdin: bytes = b"") -> Done:
    """Run a command that only looks; nothing that the repository names is started by it."""
    command = [program, "-C", str(where), *HARMLESS, *arguments]
    environment = {**_environment(), **QUIET}
    return subprocess.run(command, input=stdin, capture_output=True, check=False, env=environment)


def act(
    program: str,
    where: Path,
    *arguments: str,
    stdin: bytes = b"",
    seconds: float = ACTING_SECONDS,
) -> Done:
    """Run a command that the user wants, with their hooks, but without a terminal.

    Whatever ends it early, the time limit or Ctrl-C, ends the programs it started too.
    """
    import tempfile

    command = [program, "-C", str(where), "--no-pager", *arguments]
    # Files instead of pipes: what a hook leaves running in the background would hold a pipe open.
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=out,
                stderr=err,
                env=_environment(),
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            raise CannotWrite(f"git cannot be run: {error.strerror}", "git --version") from error
        with process:
            _see_through(process, seconds)
        out.seek(0)
        err.seek(0)
        return Done(command, process.returncode, out.read(), err.read())


def words(done: Done) -> str:
    """What git, or a hook of the user, says about a failure: plain, without secrets, not too long."""
    from gsd_fsm.documents.journal_text import redact_and_truncate
    from gsd_fsm.evidence.checks import ESCAPES

    said = (done.stderr.strip() or done.stdout.strip())[-16 * MOST_WORDS :]
    plain = ESCAPES.sub("", said.decode("utf-8", "replace").replace("\r\n", "\n")).strip()
    return redact_and_truncate(plain, MOST_WORDS) or f"exit code {done.returncode}"


def _environment() -> dict[str, str]:
    """Ours without what would lead git elsewhere, as in a hook of another repository."""
    kept = {name: it for name, it in os.environ.items() if not MISLEADING.match(name)}
    return {**kept, "LANGUAGE": "C"}


def _see_through(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        if not _ends_within(process, seconds):
            raise CannotWrite(
                f"git did not end within {seconds:g} seconds, and was ended with all it had started",
                "see whether a hook of this repository, or a program that signs, waits for somebody",
            )
    except BaseException:
        _end(process)
        raise


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(SLICE_SECONDS, seconds))
    return process.poll() is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    from gsd_fsm.evidence.checks import signal_group

    try:
        signal_group(process, deadly=False)
        _ends_within(process, STOP_SECONDS)
    finally:
        signal_group(process, deadly=True)
