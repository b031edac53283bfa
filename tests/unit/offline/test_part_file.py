"""A file that appears under its name only when complete."""

from pathlib import Path

import pytest

from hilsim.errors import CaptureError
from hilsim.offline.part_file import part_path, written_whole


def test_a_file_gets_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "a.pcap"
    with written_whole(path) as part:
        part.write_bytes(b"half")
        assert not path.exists()
    assert (path.read_bytes(), part.exists()) == (b"half", False)


def test_an_interrupted_recording_is_kept_beside_the_former_file(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(b"former")

    def broken_off():
        with written_whole(path) as part:
            part.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        broken_off()
    assert (path.read_bytes(), (tmp_path / "a.pcap.part").read_bytes()) == (b"former", b"half")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    path, target = tmp_path / "a.pcap", tmp_path / "disk" / "b.pcap"
    path.symlink_to(target)
    with written_whole(path) as part:
        part.write_bytes(b"whole")
    assert (path.is_symlink(), target.read_bytes()) == (True, b"whole")


def test_a_device_is_written_to_at_once():
    with written_whole(Path("/dev/null")) as part:
        assert part == part_path(part) == Path("/dev/null")
    assert not Path("/dev/null").is_file()


def test_a_file_that_cannot_be_moved_to_its_place_is_named_with_its_present_path(tmp_path):
    path = tmp_path / "a.pcap"

    def hindered():
        with written_whole(path) as part:
            part.write_bytes(b"whole")
            path.mkdir()

    with pytest.raises(CaptureError, match=r"a\.pcap: cannot be created: .*; the complete recording is in .*a\.pcap\.part"):
        hindered()
