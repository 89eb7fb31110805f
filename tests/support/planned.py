"""Old name of plan_loops."""

# ruff: noqa: F403
from tests.support.plan_loops import *
