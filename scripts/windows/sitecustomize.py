"""Try again where Wine fails to start a process: rarely, one ends before it has run anything."""

import _winapi

_INTERNAL_ERROR = 1359
_MOST_TRIES = 3
_create = _winapi.CreateProcess


def _create_again(*arguments, tries=1):
    try:
        return _create(*arguments)
    except OSError as error:
        if error.winerror != _INTERNAL_ERROR or tries == _MOST_TRIES:
            raise
    return _create_again(*arguments, tries=tries + 1)


_winapi.CreateProcess = _create_again
