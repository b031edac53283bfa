"""What firmware versions differ in."""

import pytest

from hilsim.families.ouster.protocol.firmware import Firmware, Footer, find_firmware, footer_of, pixel_shifts
from hilsim.families.ouster.protocol.profiles import HeaderKind


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("ousteros-image-prod-aries-v2.5.2+20230714195410", (2, 5, 2)),
        ("ousteros-image-prod-aries-v2.2.0-rc.2+20211026211824.staging.ci-git", (2, 2, 0)),
        ("v1.14.0-beta.5", (1, 14, 0)),
        ("3.1.0", (3, 1, 0)),
    ],
)
def test_the_version_is_found_in_an_images_name(image, version):
    assert find_firmware(image) == Firmware(*version)


def test_a_name_without_a_version_is_refused():
    with pytest.raises(ValueError, match="image_rev must have a version of three numbers, got 'bootes-3'"):
        find_firmware("bootes-3")


@pytest.mark.parametrize(
    ("version", "footer"),
    [
        ((2, 2), Footer.ZERO),
        ((2, 3), Footer.CONSTANT),
        ((2, 4), Footer.CONSTANT),
        ((2, 5, 2), Footer.CRC),
        ((3, 0), Footer.CONSTANT),
        ((3, 1), Footer.CRC),
        ((3, 2), Footer.CRC),
    ],
)
def test_the_footer_goes_by_firmware_and_header(version, footer):
    assert footer_of(Firmware(*version), HeaderKind.STANDARD) is footer
    assert footer_of(Firmware(*version), HeaderKind.FUSA) is Footer.ZERO
    assert footer_of(Firmware(*version), HeaderKind.NONE) is Footer.NONE


def test_rows_shift_by_their_azimuth_and_before_firmware_2_4_by_a_constant_more():
    azimuth_deg = (4.21, 1.4, -1.4, -4.21)
    assert pixel_shifts(azimuth_deg, 1024, Firmware(2, 4), "OS-1-64") == (12, 4, -4, -12)
    assert pixel_shifts(azimuth_deg, 512, Firmware(3, 1), "OS-1-64") == (6, 2, -2, -6)
    assert pixel_shifts(azimuth_deg, 1024, Firmware(2, 3), "OS-1-64") == (24, 16, 8, 0)
    assert pixel_shifts((2.07, 0.66, -0.71, -2.08), 1024, Firmware(2, 3), "OS-2-128-U1") == (12, 8, 4, 0)
