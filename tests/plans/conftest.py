"""The command line for the tests of plans."""

from tests.support.command_line import here

__all__ = ["here"]
