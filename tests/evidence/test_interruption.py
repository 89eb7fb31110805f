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
def test_poll_after_a_signal_raises_its_number(number: signal.Signals) -> None:
    reached = []

    def work(interruption: Interruption) -> None:
        interruption.poll()
        send(number)
        reached.append("the next safe point")
        interruption.poll()
        reached.append("the rest of the work")

    assert signal_that_ends(work) == number
    assert reached == ["the next safe point"]


@pytest.mark.parametrize("later", [None, signal.SIGINT, ValueError])
def test_interruptible_block_raises_first_signal_at_its_end(later: object) -> None:
    reached = []

    def work(_: Interruption) -> None:
        send(signal.SIGTERM)
        reached.append("the end of the work")
        if later is ValueError:
            raise ValueError
        if later:
            send(signal.SIGINT)

    assert signal_that_ends(work) == signal.SIGTERM
    assert reached


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
    reached = []

    def read() -> None:
        sender.start()
        os.read(reader, 1)
        reached.append("the end of the read")

    rescue.start()
    try:
        number = signal_that_ends(lambda interruption: interruption.run_blocking(read))
    finally:
        rescue.cancel()
        sender.join()
        os.close(reader)
        os.close(writer)
    assert number == signal.SIGTERM
    assert not reached


def test_run_blocking_does_not_begin_after_a_signal_and_raises_for_the_first_only() -> None:
    late = Mock()

    def work(interruption: Interruption) -> None:
        send(signal.SIGTERM)
        interruption.run_blocking(late)

    assert signal_that_ends(work) == signal.SIGTERM
    late.assert_not_called()
    reached = []

    def call() -> None:
        try:
            send(signal.SIGTERM)
        finally:
            send(signal.SIGTERM)
            reached.append("the end of the cleanup")

    assert signal_that_ends(lambda it: it.run_blocking(call)) == signal.SIGTERM
    assert reached
