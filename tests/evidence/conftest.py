"""A project for the tests of evidence."""

from tests.support.command_line import here

__all__ = ["here"]
