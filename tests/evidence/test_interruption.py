"""Signals are deferred until a safe point."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from gsd_fsm.evidence.interruption import Interrupted, Interruption, interruptible
from tests.support.check_commands import AGES, posix_only

pytestmark = posix_only
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def signal_that_ends(work: Callable[[Interruption], None]) -> int:
    with pytest.raises(Interrupted) as caught, interruptible() as interruption:
        work(interruption)
    return caught.value.number


@pytest.mark.parametrize("number", NUMBERS)
def test_first_signal_is_deferred_until_poll_and_the_end_of_the_block(number: int) -> None:
    at_poll = []

    def work(interruption: Interruption) -> None:
        interruption.poll()
        send(number)
        send(signal.SIGINT)
        with pytest.raises(Interrupted) as caught:
            interruption.poll()
        at_poll.append(caught.value.number)

    assert [signal_that_ends(work)] == at_poll == [number]


def test_interruptible_block_that_fails_after_a_signal_raises_the_signal() -> None:
    def work(_: Interruption) -> None:
        send(signal.SIGTERM)
        raise ValueError

    assert signal_that_ends(work) == signal.SIGTERM


@pytest.mark.parametrize("number", NUMBERS)
def test_interruptible_block_restores_handlers_and_ignores_ignored_signals(number: int) -> None:
    before = signal.getsignal(number)
    with interruptible():
        assert signal.getsignal(number) != before
    assert signal.signal(number, signal.SIG_IGN) == before
    try:
        with interruptible() as interruption:
            send(number)
            interruption.poll()
    finally:
        signal.signal(number, before)


def test_run_blocking_ends_a_waiting_call_when_a_signal_comes() -> None:
    reader, writer = os.pipe()
    # The read would wait for ever if the signal did not end it.
    rescue = threading.Timer(AGES, os.write, (writer, b"!"))
    sender = threading.Timer(0.1, send, (signal.SIGTERM,))
    after = Mock()

    def read() -> None:
        sender.start()
        os.read(reader, 1)
        after()

    rescue.start()
    number = signal_that_ends(lambda interruption: interruption.run_blocking(read))
    rescue.cancel()
    sender.join()
    os.close(reader)
    os.close(writer)
    assert number == signal.SIGTERM
    after.assert_not_called()


def test_run_blocking_after_a_signal_does_not_begin() -> None:
    late = Mock()

    def work(interruption: Interruption) -> None:
        send(signal.SIGTERM)
        interruption.run_blocking(late)

    assert signal_that_ends(work) == signal.SIGTERM
    late.assert_not_called()


def test_run_blocking_raises_for_the_first_signal_only() -> None:
    after = Mock()

    def call() -> None:
        try:
            send(signal.SIGTERM)
        finally:
            send(signal.SIGTERM)
            after()

    assert signal_that_ends(lambda it: it.run_blocking(call)) == signal.SIGTERM
    after.assert_called_once()
