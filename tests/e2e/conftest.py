"""The real client and a scripted model, for each test anew."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support.e2e.client import NoClient, find_client
from tests.support.e2e.fake_model import FakeModel
from tests.support.e2e.network import loopback_only
from tests.support.e2e.project import Rig


@pytest.fixture(scope="session")
def claude() -> Iterator[Path]:
    """The client's binary; from here on there is no network."""
    try:
        binary = find_client()
    except NoClient as error:
        pytest.fail(str(error), pytrace=False)
    with loopback_only():
        yield binary


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test passes only if its sessions were calm, too."""
    yield
    rig = getattr(item, "funcargs", {}).get("rig")
    if isinstance(rig, Rig):
        rig.require_calm()


@pytest.fixture
def rig(claude: Path, tmp_path: Path) -> Iterator[Rig]:
    """A project whose path is as awkward as a user's may be, with the hook installed."""
    scratch = Path(tempfile.mkdtemp(prefix="gsd-"))
    try:
        with FakeModel() as model:
            rig = Rig(tmp_path / "my prójekt", claude, scratch, model)
            try:
                rig.ok("init", "--scope", "project", "--yes")
                yield rig
            finally:
                for session in rig.sessions:
                    session.kill()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
