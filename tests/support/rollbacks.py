"""Old name of phases."""

# ruff: noqa: F403
from tests.support.phases import *
