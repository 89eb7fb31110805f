"""Outputs for use cases that run commands."""

from __future__ import annotations


class SilentOutput:
    """Shows nothing and ends nothing."""

    def say(self, text: str) -> None:
        pass

    def show(self, chunk: bytes) -> None:
        pass

    def poll(self) -> None:
        pass


class RecordedOutput(SilentOutput):
    """Keeps what was said and shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown = b""

    def say(self, text: str) -> None:
        self.lines.append(text)

    def show(self, chunk: bytes) -> None:
        self.shown += chunk
