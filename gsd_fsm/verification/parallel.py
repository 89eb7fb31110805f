"""Run several functions at once, yield each result when it is available, and end all of them together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

from gsd_fsm.interruption import Poll

Key = TypeVar("Key")
Done = TypeVar("Done")

LEAST_AT_ONCE, MOST_AT_ONCE = 2, 4
SLICE_SECONDS = 0.1  # a signal is noticed between two waits


class Halted(Exception):
    """Report to a function that its result is not needed any more."""


def in_parallel(
    work: Mapping[Key, Callable[[Poll], Done]], poll: Poll
) -> Generator[tuple[Key, Done], None, None]:
    """Yield each key with its result, in the order in which the functions return.

    Call `poll` every SLICE_SECONDS. Each function gets a poll function of its own, which raises Halted
    once `poll` has raised or the generator was closed; wait for all functions before returning.
    """
    halt = threading.Event()

    def poll_halt() -> None:
        if halt.is_set():
            raise Halted

    pool = ThreadPoolExecutor(min(MOST_AT_ONCE, max(LEAST_AT_ONCE, os.cpu_count() or 1)))
    try:
        running = {pool.submit(do, poll_halt): key for key, do in work.items()}
        while running:
            poll()
            wait(running, SLICE_SECONDS, FIRST_COMPLETED)
            for future in [future for future in running if future.done()]:
                yield running.pop(future), future.result()
    finally:
        halt.set()
        pool.shutdown(cancel_futures=True)
