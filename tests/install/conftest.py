"""The fixtures of tests about an installation."""

from tests.support.client_settings import _own_client, client, compiled, python
from tests.support.command_line import here, repository
from tests.support.hook_agent import agent

__all__ = ["_own_client", "agent", "client", "compiled", "here", "python", "repository"]
