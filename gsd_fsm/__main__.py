"""The command, run as `python -m gsd_fsm`."""

from gsd_fsm.cli import main

main()
