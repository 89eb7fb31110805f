"""Finding the client: what is said when there is none, or the wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.e2e import client
from tests.support.e2e.client import NoClient, find_client


def test_find_client_uses_named_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "claude"
    binary.touch()
    monkeypatch.setenv(client.VARIABLE, str(binary))
    assert find_client() == binary.resolve()


def test_find_client_without_npm_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(client.VARIABLE, str(tmp_path / "nothing here"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoClient, match=f"npm is missing.*{client.VERSION}.*{client.VARIABLE}"):
        find_client()


def test_find_client_refuses_other_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = client.platform_name()
    binary = tmp_path / "node_modules" / f"{client.PACKAGE}-{platform}" / "claude"
    binary.parent.mkdir(parents=True)
    binary.write_bytes(b"something else")
    monkeypatch.setenv(client.VARIABLE, str(tmp_path))
    monkeypatch.setitem(client.SHA256, platform, "0" * 64)
    with pytest.raises(NoClient, match="SHA-256"):
        find_client()
