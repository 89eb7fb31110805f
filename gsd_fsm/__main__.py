"""The command, run as `gsd-fsm` or as `python -m gsd_fsm`."""

import gc


def main() -> None:
    """Run one command and leave with its exit code."""
    gc.disable()  # nothing that is imported here becomes garbage
    from gsd_fsm.cli import main as run

    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
