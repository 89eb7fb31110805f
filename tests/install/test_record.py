from __future__ import annotations

import base64
import hashlib
import json

import pytest

from gsd_fsm.install import record
from gsd_fsm.install.hook_entries import CAP
from tests.support.client_settings import SETTINGS, Client
from tests.support.command_line import Here

SPACED = b'\xef\xbb\xbf{"a":  1, "hooks" : { }, "env": {"%s": 20}}' % CAP.encode()


def rewrite_as_earlier_version(client: Client, original: bytes | None) -> None:
    """Replace the record of an installation by the one that earlier versions wrote."""
    now = json.loads(client.record().read_text())
    old = {name: now[name] for name in ("settings", "made_directory", "cap", "python")} | {
        "original": None if original is None else base64.b64encode(original).decode(),
        "written": hashlib.sha256(client.files["local"].read_bytes()).hexdigest(),
        "version": "3.11.2",
    }
    client.record().write_text(json.dumps(old))


@pytest.mark.parametrize(
    ("original", "upgraded"), [(SPACED, False), (SPACED, True), (b"{ }", True), (None, False)]
)
def test_record_of_an_earlier_version_restores_every_byte(
    here: Here, client: Client, original: bytes | None, upgraded: bool
) -> None:
    if original is not None:
        client.write(original)
    before = client.all_files()
    here.ok("init", "--raise-cap", "30", "--yes")
    rewrite_as_earlier_version(client, original)
    if upgraded:
        here.ok("init", "--raise-cap", "40", "--yes")
    here.ok("uninstall", "--yes")
    assert client.all_files() == before


def test_uninstall_without_a_readable_record_keeps_other_parts(here: Here, client: Client) -> None:
    path = client.write(SETTINGS)
    before = path.read_bytes()
    for damage in ("{broken", "[]", '{"settings": "x", "original": "%"}'):
        here.ok("init", "--yes")
        client.record().write_text(damage)
        assert record.recall(path) is None
        here.ok("uninstall", "--yes")
        assert path.read_bytes() == before


def test_record_holds_no_setting_of_the_user(here: Here, client: Client) -> None:
    client.write({"env": {"API_KEY": "secret"}, "model": "opus"})
    here.ok("init", "--yes")
    assert json.loads(client.record().read_text()) == {
        "settings": str(client.files["local"]), "python": client.hooks()[0]["command"],
        "created": False, "made_directory": False, "cap": None,
        "before": {"empty": {}, "cap": None}, "allowed": [], "excluded": [],
    }  # fmt: skip
    assert client.record().stat().st_mode & 0o777 == 0o600
