from __future__ import annotations

from gsd_fsm.install.hook_entries import CODE, ours
from tests.support.client_settings import everywhere

OLD_CODE = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import gsd_fsm_hook; gsd_fsm_hook.main()"
)


def test_hook_is_ours_if_it_runs_our_file() -> None:
    for hook, is_ours in (
        ({"command": "/home/me/bin/log_gsd_fsm_hook_calls.sh"}, False),
        ({"command": "python3 /x/not_gsd_fsm_hook.py"}, False),
        ({"command": "/bin/sh", "args": ["-c", "cat /x/gsd_fsm_hook.py | wc"]}, False),
        ({"command": "python3", "args": ["-c", "import gsd_fsm_hook"]}, False),
        ({"command": "python3", "args": ["-c", f"import os; {OLD_CODE}"]}, False),
        ({"command": "python3", "args": ["-c", CODE, "/x", "y"]}, True),
        ({"command": "python3", "args": ["-c", OLD_CODE, "/x", "y"]}, True),
        ({"command": "python3", "args": ["/x y/gsd_fsm_hook.py"]}, True),
        ({"command": 'python3 "/x y/gsd_fsm_hook.py"'}, True),
        ({"command": r"py C:\x\gsd_fsm_hook.py"}, True),
        ({"command": 5, "args": [None]}, False),
    ):
        assert bool(ours(everywhere({"type": "command", **hook}))) is is_ours, hook
