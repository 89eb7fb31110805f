"""Verification: the checks of a plan, the gaps they leave, and what is reported of both."""
