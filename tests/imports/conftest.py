"""A project with the real command."""

from __future__ import annotations

from tests.support.command_line import here

__all__ = ["here"]
