"""`hook`: the file that agents run, and a run of it by hand."""

from __future__ import annotations

import os

import click

from gsd_fsm.cli.call import Call, verb


@click.command()
@click.option("--path", "show_path", is_flag=True, help="Print where the hook file is.")
@verb
def hook(call: Call, *, show_path: bool) -> None:
    """Run the hook on stdin as an agent would: one signal in, at most one JSON object out.

    Always exits with 0; what it could not do stands on stderr and in .gsd/hook.log.
    """
    from gsd_fsm.core.hook.main import main
    from gsd_fsm.installer import packaged_hook

    if show_path:
        path = str(packaged_hook())
        call.answer({"path": path}, path)
        return
    os.chdir(call.start_directory)
    main("cli")
