"""The table of profiles against published sizes, and its own rules."""

import pytest

from hilsim.families.ouster.protocol.firmware import Footer
from hilsim.families.ouster.protocol.lidar import lidar_layout
from hilsim.families.ouster.protocol.profiles import PROFILES, Field, FieldKind, HeaderKind, Profile

SIZES = {
    "LEGACY": (3392, 6464, 12608, 24896, 49472),
    "RNG19_RFL8_SIG16_NIR16": (3328, 6400, 12544, 24832, 49408),
    "RNG19_RFL8_SIG16_NIR16_DUAL": (4352, 8448, 16640, 33024, None),
    "RNG15_RFL8_NIR8": (1280, 2304, 4352, 8448, 16640),
    "RNG15_RFL8_NIR8_DUAL": (2304, 4352, 8448, 16640, 33024),
    "FUSA_RNG15_RFL8_NIR8_DUAL": (2304, 4352, 8448, 16640, 33024),
}
"""Bytes of a packet with 16, 32, 64, 128 and 256 channels, as ouster-sdk 1.0.1 computes them."""


@pytest.mark.parametrize("name", PROFILES)
def test_a_packet_has_the_published_size_or_is_refused(name):
    footer = Footer.NONE if name == "LEGACY" else Footer.CRC
    for channels, size in zip((16, 32, 64, 128, 256), SIZES[name], strict=True):
        if size is not None:
            assert lidar_layout(PROFILES[name], channels, footer).size == size
        else:
            with pytest.raises(ValueError, match=f"a packet of {name} with {channels} channels must be at most 65507 bytes, got 65792"):
                lidar_layout(PROFILES[name], channels, footer)


@pytest.mark.parametrize(
    ("name", "returns", "largest_mm", "lacks"),
    [
        ("LEGACY", 1, 1_048_575, {FieldKind.WINDOW}),
        ("RNG19_RFL8_SIG16_NIR16", 1, 524_287, set()),
        ("RNG19_RFL8_SIG16_NIR16_DUAL", 2, 524_287, set()),
        ("RNG15_RFL8_NIR8", 1, 262_136, {FieldKind.SIGNAL, FieldKind.WINDOW}),
        ("RNG15_RFL8_NIR8_DUAL", 2, 262_136, {FieldKind.SIGNAL}),
        ("FUSA_RNG15_RFL8_NIR8_DUAL", 2, 262_136, {FieldKind.SIGNAL}),
    ],
)
def test_a_profile_has_returns_a_largest_range_and_quantities(name, returns, largest_mm, lacks):
    profile = PROFILES[name]
    assert (profile.returns, profile.largest_range_mm) == (returns, largest_mm)
    assert {kind for kind in FieldKind if not profile.carries(kind)} == lacks


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ((Field(FieldKind.RANGE, 0, 0, 0, 19), Field(FieldKind.FLAGS, 0, 0, 18, 5)), "must not overlap"),
        ((Field(FieldKind.RANGE, 0, 0, 20, 19),), "must lie within a word"),
        ((Field(FieldKind.RANGE, 0, 1, 0, 19),), "must lie within 1 words"),
        ((Field(FieldKind.RANGE, 0, 1, 0, 1),), "must lie within 1 words"),
        ((Field(FieldKind.RANGE, 0, 0, 0, 15, 10),), "must be powers of two"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields, fault):
    with pytest.raises(ValueError, match=f"(fields|scales) of X {fault}"):
        Profile(name="X", words=1, fields=fields)


def test_a_profile_takes_another_packet_header_but_not_none():
    single = PROFILES["RNG19_RFL8_SIG16_NIR16"]
    assert single.with_header(HeaderKind.FUSA).header is HeaderKind.FUSA
    with pytest.raises(ValueError, match="header of RNG19_RFL8_SIG16_NIR16 must be like STANDARD, got NONE"):
        single.with_header(HeaderKind.NONE)


@pytest.mark.parametrize(("name", "footer"), [("LEGACY", Footer.CRC), ("RNG15_RFL8_NIR8", Footer.NONE)])
def test_a_footer_that_a_profile_cannot_have_is_refused(name, footer):
    with pytest.raises(ValueError, match=f"footer of {name} must be (one|none), got {footer.name}"):
        lidar_layout(PROFILES[name], 32, footer)
