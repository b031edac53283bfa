"""The CRC against its published check value and a slow one, bit by bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.protocols.crc64 import crc64, crcs_of, write_crc
from tests.depth import examples


def slow_crc(data):
    crc = 0xFFFF_FFFF_FFFF_FFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xC96C5795D7870F42 if crc & 1 else 0)
    return crc ^ 0xFFFF_FFFF_FFFF_FFFF


def test_the_check_value_is_that_of_crc_64_xz():
    assert int(crc64(np.frombuffer(b"123456789", np.uint8), 9)) == 0x995DC9BBDF1939FA


@given(st.binary(max_size=70))
@settings(max_examples=examples(50))
def test_eight_bytes_a_step_give_what_single_bits_give(data):
    assert int(crc64(np.frombuffer(data, np.uint8), len(data))) == slow_crc(data)


def test_a_written_crc_is_found_behind_the_bytes_that_it_covers():
    payloads = np.random.default_rng(3).integers(0, 256, (3, 50), np.uint8)
    for payload in payloads:
        write_crc(payload, 42)
    np.testing.assert_array_equal(crcs_of(payloads), payloads[:, 42:].copy().view("<u8")[:, 0])
    assert int(crcs_of(payloads)[1]) == slow_crc(payloads[1, :42].tobytes())
