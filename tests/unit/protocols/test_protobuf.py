"""Protobuf's wire format, by the examples of its specification (protobuf.dev, "Encoding")."""

import pytest

from hilsim.protocols.protobuf import Field, Kind, double, fields, message, read_message, varint


def test_150_in_field_1_is_the_example_of_the_specification():
    assert varint(1, 150) == bytes.fromhex("08 96 01")
    assert list(fields(bytes.fromhex("08 96 01"))) == [(1, 150)]


@pytest.mark.parametrize("value", [1, 127, 128, 300, 16_383, 16_384, 2**32, 2**63, 2**64 - 1])
def test_whole_numbers_of_any_size_are_read_as_they_were_written(value):
    assert list(fields(varint(2047, value))) == [(2047, value)]


@pytest.mark.parametrize("size", [0, 127, 128, 20_000])
def test_a_message_within_has_its_length_before_it(size):
    assert list(fields(message(16, bytes(size)) + varint(1, 7))) == [(16, bytes(size)), (1, 7)]


_POINT = {1: Field("x"), 2: Field("y"), 3: Field("z")}


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (1, 3)])
def test_float64s_are_read_in_any_order(order):
    assert read_message(b"".join(double(number, number / 8) for number in order), _POINT) == {"xyz"[number - 1]: number / 8 for number in order}


def test_fields_that_a_schema_does_not_list_are_passed_over():
    assert read_message(varint(9, 1) + double(2, 1.5) + message(12, b"x"), _POINT) == {"y": 1.5}


def test_messages_within_are_merged_and_repeated_ones_listed():
    schema = {4: Field("at", Kind.MESSAGE, _POINT), 5: Field("all", Kind.MESSAGE, _POINT, is_repeated=True), 6: Field("name", Kind.TEXT)}
    content = message(4, double(1, 1.0)) + message(5, double(1, 2.0)) + message(4, double(2, 3.0)) + message(5, b"") + message(6, b"wall")
    assert read_message(content, schema) == {"at": {"x": 1.0, "y": 3.0}, "all": [{"x": 2.0}, {}], "name": "wall"}


def test_not_a_number_is_refused_with_its_path():
    content = message(5, b"".join(double(number, float("inf")) for number in (1, 2, 3)))
    with pytest.raises(ValueError, match=r"^\.all\[0\]\.x: must be finite, got inf$"):
        read_message(content, {5: Field("all", Kind.MESSAGE, _POINT, is_repeated=True)})
