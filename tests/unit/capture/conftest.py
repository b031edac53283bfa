import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def by_hand():
    """The module that builds capture files byte by byte."""
    spec = importlib.util.spec_from_file_location("frames_by_hand", Path(__file__).parent / "frames_by_hand.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def file_of(tmp_path):
    """Write bytes to a file and give its path."""

    def write(content, name="some.pcap"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write
