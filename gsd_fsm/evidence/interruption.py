"""Watch running commands: show their output, and defer the signals that end this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

Poll = Callable[[], None]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Interrupted(BaseException):
    """Report the signal that ended the work.

    Not an Exception, like KeyboardInterrupt: code that handles failures must not handle it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interruption:
    """Remember the first signal until the work reaches a safe point, where it calls `poll`.

    A handler that only raises is not enough: Python discards an exception that is raised inside a
    finalizer or a weakref callback, and the work would continue.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._may_raise = False

    def receive(self, number: int, _frame: object) -> None:
        if self._number is None:
            self._number = number
        if self._may_raise:
            self._may_raise = False
            self.poll()

    def poll(self) -> None:
        """Raise Interrupted if a signal was received."""
        if self._number is not None:
            raise Interrupted(self._number)

    def run_blocking(self, call: Callable[[], None]) -> None:
        """Run a call that may block forever, such as a write to a full pipe; a signal ends it.

        Only here does the handler raise, and only once: anywhere else the exception could leave a
        command behind.
        """
        try:
            self._may_raise = True
            self.poll()  # the signal may have come before the handler could raise
            call()
        finally:
            self._may_raise = False


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Defer signals in this block; at its end, raise Interrupted if one was received.

    Only the main thread can do this. A signal that this process ignores, for example under nohup,
    stays ignored.
    """
    import signal

    interruption = Interruption()
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, interruption.receive) for number in handled}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        interruption.poll()


class Output:
    """Receive the output of running commands, and may end them; this one does neither."""

    def say(self, text: str) -> None:
        """Show a line about the commands."""

    def show(self, chunk: bytes) -> None:
        """Show output of a command as it comes."""

    def running(self, names: Sequence[str]) -> None:
        """Show the commands that run now; `poll` updates their elapsed times."""

    def quote(self, what: str, text: str) -> None:
        """Show the end of a command's output to a reader from whom `show` hides it."""

    def poll(self) -> None:
        """Raise to end the commands; called several times a second."""


# Opens an output while commands run.
Watch = Callable[[], AbstractContextManager[Output]]


def in_silence() -> AbstractContextManager[Output]:
    """Show nothing and let every command end by itself."""
    return contextlib.nullcontext(Output())
