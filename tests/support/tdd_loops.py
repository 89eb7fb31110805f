"""Old name of plan_loops."""

# ruff: noqa: F401, F403
from tests.support.plan_loops import *
from tests.support.plan_loops import TDD_TASK as TASK
