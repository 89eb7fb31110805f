"""Fixtures for the history tests."""

from tests.support.command_line import here

__all__ = ["here"]
