"""Run the checks of a plan, record the gaps they find, and write and read verification reports."""
