"""The fixtures of tests about an installation."""

from tests.support.client_settings import _own_client, client, compiled, python
from tests.support.command_line import here, repository

__all__ = ["_own_client", "client", "compiled", "here", "python", "repository"]
