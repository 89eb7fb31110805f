"""Several things at once, each told when it is done, and all of them ended together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

Key = TypeVar("Key")
Done = TypeVar("Done")

LEAST_AT_ONCE, MOST_AT_ONCE = 2, 4
SLICE_SECONDS = 0.1  # Windows delivers Ctrl-C only between two waits


def in_parallel(
    work: Mapping[Key, Callable[[threading.Event], Done]],
) -> Generator[tuple[Key, Done], None, None]:
    """Yield what each came to, as it comes; to be closed.

    Whatever ends it early sets the event that each of them was given, and waits for them.
    """
    halt = threading.Event()
    pool = ThreadPoolExecutor(min(MOST_AT_ONCE, max(LEAST_AT_ONCE, os.cpu_count() or 1)))
    try:
        running = {pool.submit(do, halt): key for key, do in work.items()}
        while running:
            wait(running, SLICE_SECONDS, FIRST_COMPLETED)
            for future in [future for future in running if future.done()]:
                yield running.pop(future), future.result()
    finally:
        halt.set()
        try:
            pool.shutdown(cancel_futures=True)
        except BaseException:
            pool.shutdown()  # a second signal must not leave behind what is deaf to the first
            raise
