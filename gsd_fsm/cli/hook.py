"""`hook`: the file that agents run, and a run of it by hand."""

from __future__ import annotations

import os

import click

import gsd_fsm
from gsd_fsm.cli.call import Call, verb

HOOK_NAME = "gsd_fsm_hook.py"


def hook_path() -> str:
    """The hook that came with this version."""
    return os.path.join(os.path.dirname(os.path.abspath(gsd_fsm.__file__)), HOOK_NAME)


@click.command()
@click.option("--path", "show_path", is_flag=True, help="Print where the hook file is.")
@verb
def hook(call: Call, *, show_path: bool) -> None:
    """Run the hook on stdin as an agent would: one signal in, at most one JSON object out.

    Always exits with 0; what it could not do stands on stderr and in .gsd/hook.log.
    """
    if show_path:
        call.answer({"path": hook_path()}, hook_path())
        return
    from gsd_fsm.core.entry import main

    os.chdir(call.start_directory)
    main("cli")
