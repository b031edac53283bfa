"""LightWare's frames, without the sensor that sends them."""

import pytest

from hilsim.parts.rangefinders.lightware import FrameFinder, Request, encode_frame


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("data", [b"", b"\x01", bytes(range(130))], ids=len)
def test_a_frame_is_read_as_it_was_written(write, data):
    frame = encode_frame(30, data, write=write)
    assert frame[1] & 1 == write  # flags, bit 0
    assert FrameFinder().feed(frame, 0) == [Request(command=30, write=write, data=data)]
