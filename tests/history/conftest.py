"""Fixtures of the tests of histories."""

from tests.support.command_line import here

__all__ = ["here"]
