"""Protobuf's wire format, by the examples of its specification (protobuf.dev, "Encoding")."""

import pytest

from hilsim.protocols.protobuf import fields, message, varint


def test_150_in_field_1_is_the_example_of_the_specification():
    assert varint(1, 150) == bytes.fromhex("08 96 01")
    assert list(fields(bytes.fromhex("08 96 01"))) == [(1, 150)]


@pytest.mark.parametrize("value", [1, 127, 128, 300, 16_383, 16_384, 2**32, 2**63, 2**64 - 1])
def test_whole_numbers_of_any_size_are_read_as_they_were_written(value):
    assert list(fields(varint(2047, value))) == [(2047, value)]


@pytest.mark.parametrize("size", [0, 127, 128, 20_000])
def test_a_message_within_has_its_length_before_it(size):
    assert list(fields(message(16, bytes(size)) + varint(1, 7))) == [(16, bytes(size)), (1, 7)]
