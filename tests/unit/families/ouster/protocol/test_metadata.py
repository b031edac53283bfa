"""Metadata written and read: seven groups, the flat form, and every fault at once."""

import json

import numpy as np
import pytest

from hilsim.errors import PacketError
from hilsim.families.ouster.protocol.firmware import Firmware, Footer
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets, lidar_layout
from hilsim.families.ouster.protocol.metadata import GROUPS, LIDAR_MODES, metadata_document
from hilsim.families.ouster.protocol.metadata_reading import read_metadata
from hilsim.families.ouster.protocol.profiles import PROFILES, HeaderKind
from tests.ouster_sensors import sensor


def document(**changes):
    return metadata_document(sensor(**changes))


def read(changed):
    return read_metadata(json.dumps(changed))


@pytest.mark.parametrize("version", ["2.2.0", "2.5.2", "3.0.1", "3.2.0"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_sensors_metadata_is_read_as_it_was_written(profile, version):
    written = sensor(profile, 64, version, "2048x10", column_window=(1800, 200), user_data='{"a": 1}', imu_data_format={"gyro_fsr": "NORMAL"})
    assert read(metadata_document(written)) == written


def test_the_document_has_the_seven_groups_and_no_others():
    assert set(document()) == set(GROUPS)


def test_facts_are_in_every_place_where_clients_read_them():
    found = document(profile="RNG15_RFL8_NIR8", channels=64, mode="512x20")
    assert found["config_params"]["udp_profile_lidar"] == found["lidar_data_format"]["udp_profile_lidar"] == "RNG15_RFL8_NIR8"
    assert (found["config_params"]["lidar_mode"], found["lidar_data_format"]["columns_per_frame"]) == ("512x20", 512)
    assert found["lidar_data_format"]["column_window"] == [0, 511]
    assert found["lidar_data_format"]["pixels_per_column"] == len(found["beam_intrinsics"]["beam_altitude_angles"]) == 64
    assert found["sensor_info"]["prod_sn"] == "122247000785"
    assert type(found["config_params"]["signal_multiplier"]) is int


@pytest.mark.parametrize(
    ("version", "settings", "formats"),
    [("2.5.2", set(), set()), ("3.1.0", {"return_order"}, set()), ("3.2.0", {"return_order", "header_type"}, {"fps", "header_type"})],
)
def test_keys_go_by_firmware(version, settings, formats):
    found = document(version=version)
    assert {"return_order", "header_type"} & set(found["config_params"]) == settings
    assert {"fps", "header_type"} & set(found["lidar_data_format"]) == formats


@pytest.mark.parametrize(
    ("profile", "header", "others"),
    [("RNG19_RFL8_SIG16_NIR16", HeaderKind.STANDARD, HeaderKind.FUSA), ("FUSA_RNG15_RFL8_NIR8_DUAL", HeaderKind.FUSA, HeaderKind.STANDARD)],
)
def test_firmware_3_2_has_a_setting_for_the_header_of_any_profile(profile, header, others):
    own = read(document(profile=profile, version="3.2.0"))
    assert (own.header, own.profile.header) == (None, header)
    changed_header = sensor(profile, version="3.2.0", header=others)
    found = metadata_document(changed_header)
    assert found["lidar_data_format"]["header_type"] == found["config_params"]["header_type"] == others.name
    assert (read(found), read(found).profile.header) == (changed_header, others)


def flat(**changes):
    """A file of an older client."""
    return {
        "beam_altitude_angles": [10.0, -10.0],
        "beam_azimuth_angles": [1.0, -1.0],
        "image_rev": "ousteros-image-prod-aries-v2.3.0+20220415163956",
        "initialization_id": 5431293,
        "lidar_mode": "1024x10",
        "prod_line": "OS-2-2",
        "prod_sn": "992210000957",
        "udp_port_lidar": 7502,
        "client_version": "ouster_client 0.3.0",
    } | changes


def test_the_flat_form_is_read_with_defaults_of_its_firmware_and_model():
    found = read(flat())
    assert (found.lidar_profile, found.imu_profile, found.footer, found.firmware) == ("LEGACY", "LEGACY", Footer.NONE, Firmware(2, 3))
    assert (found.beams.origin_mm, found.beams.lidar_to_sensor[11], found.imu_to_sensor[3]) == (13.762, 36.18, 6.253)
    assert found.pixel_shift_by_row == (9, 3)
    assert (found.columns_per_frame, found.rate_hz, found.window, dict(found.settings)) == (1024, 10, (0, 1023), {"udp_port_lidar": 7502})


def test_the_flat_form_has_its_format_in_data_format():
    found = read(flat(data_format={"udp_profile_lidar": "RNG15_RFL8_NIR8", "columns_per_frame": 1024, "pixel_shift_by_row": [7, 8]}))
    assert (found.lidar_profile, found.pixel_shift_by_row) == ("RNG15_RFL8_NIR8", (7, 8))


def test_the_mode_follows_from_the_columns_where_a_file_has_no_mode():
    without = flat(data_format={"columns_per_frame": 2048})
    del without["lidar_mode"]
    assert read(without).lidar_mode == "2048x10"


def test_the_flat_form_becomes_the_seven_groups():
    found = read(flat())
    assert read(metadata_document(found)) == found


@pytest.mark.parametrize("group", GROUPS)
def test_a_missing_group_is_a_fault(group):
    whole = document()
    del whole[group]
    first = next(name for name in GROUPS if name != group)
    with pytest.raises(PacketError, match=f"^Ouster metadata: {group} must be there, as {first} is"):
        read(whole)


def changed(group, **values):
    whole = document()
    whole[group] |= values
    return whole


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (changed("beam_intrinsics", beam_altitude_angles=[1.0]), r"beam_intrinsics.beam_altitude_angles must be 32 numbers, got \[1.0\]"),
        (changed("beam_intrinsics", beam_azimuth_angles=[float("nan")] * 32), "beam_intrinsics.beam_azimuth_angles must be 32 numbers, got"),
        (changed("beam_intrinsics", beam_to_lidar_transform="no"), 'beam_intrinsics.beam_to_lidar_transform must be 16 numbers, got "no"'),
        (changed("lidar_data_format", columns_per_frame=512), "lidar_data_format.columns_per_frame must be 1024 as in lidar_mode, got 512"),
        (changed("lidar_data_format", columns_per_packet=8), "lidar_data_format.columns_per_packet must be 16, got 8"),
        (changed("lidar_data_format", column_window=[0, 1024]), r"column_window must be within 0 to 1023, got \[0, 1024\]"),
        (changed("lidar_data_format", udp_profile_lidar="FIVE_WORD_PIXEL"), "udp_profile_lidar must be one of LEGACY, .*, got FIVE_WORD_PIXEL"),
        (
            changed("lidar_data_format", udp_profile_lidar="LEGACY", header_type="FUSA"),
            "udp_profile_imu and header_type must be LEGACY and STANDARD beside the lidar profile LEGACY, got LEGACY, FUSA",
        ),
        (changed("lidar_data_format", header_type=["FUSA"]), r'lidar_data_format.header_type must be STANDARD or FUSA, got \["FUSA"\]'),
        (changed("lidar_data_format", pixel_shift_by_row=[1]), r"lidar_data_format.pixel_shift_by_row must be 32 integers, got \[1\]"),
        (changed("lidar_data_format", pixels_per_column=0), "lidar_data_format.pixels_per_column must be a number above 0, got 0"),
        (changed("config_params", lidar_mode="1000x10"), 'config_params.lidar_mode must be one of 512x10, .*, got "1000x10"'),
        (changed("config_params", signal_multiplier=4), "signal_multiplier must be 0.25, 0.5, 1, 2 or 3, got 4"),
        (changed("sensor_info", prod_sn="1099511627776"), "prod_sn must be digits of a number below 2.40, got '1099511627776'"),
        (changed("sensor_info", prod_sn=7), "sensor_info.prod_sn must be a text, got 7"),
        (changed("sensor_info", image_rev="bootes-v4.0.0"), "image_rev must be of a firmware before 3.3.0, got 4.0.0"),
        (changed("sensor_info", image_rev="bootes"), "sensor_info.image_rev must have a version of three numbers, got 'bootes'"),
        (changed("sensor_info", initialization_id=1 << 24), "initialization_id must be 0 to 16777215, got 16777216"),
        (document() | {"user_data": {}}, "user_data must be a text, got {}"),
        (document() | {"imu_intrinsics": [1]}, r"imu_intrinsics must be an object, got \[1\]"),
        (flat(data_format=3), "data_format must be an object, got 3"),
        (changed("lidar_data_format", column_window=None), "lidar_data_format.column_window must be two integers, got nothing"),
        (changed("lidar_intrinsics", lidar_to_sensor_transform=None), "lidar_intrinsics.lidar_to_sensor_transform must be 16 numbers, got nothing"),
        (flat(beam_altitude_angles=None), "beam_altitude_angles must be a list of numbers, got nothing"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(given, fault):
    with pytest.raises(PacketError, match=f"^Ouster metadata: {fault}"):
        read(given)


def test_a_file_without_an_image_is_of_an_early_firmware_whose_reflectivity_has_16_bits():
    early = read(flat(image_rev=""))
    layout = lidar_layout(early.profile, early.beams.channels, early.footer)
    payload = np.zeros((1, layout.size), np.uint8)
    payload[0, layout.first_column + layout.first_pixel + 4 :][: 2 * layout.pixel_size : layout.pixel_size] = (255, 3)
    payload[0, layout.first_column + layout.first_pixel + 5 :][: 2 * layout.pixel_size : layout.pixel_size] = (255, 0)
    assert early.firmware < Firmware(2, 1)
    assert decode_lidar_packets(payload, early.profile, layout).pixels.reflectivity[0, 0, 0].tolist() == [255, 32]


def test_all_faults_are_reported_at_once():
    whole = document()
    whole["sensor_info"] |= {"initialization_id": -1, "prod_sn": "x", "prod_line": 5}
    whole["beam_intrinsics"] |= {"beam_altitude_angles": [], "lidar_origin_to_beam_origin_mm": -3}
    whole["lidar_data_format"] |= {"column_window": [-1, 3]}
    whole["config_params"] |= {"lidar_mode": "5x5", "signal_multiplier": 7}
    with pytest.raises(PacketError) as raised:
        read(whole)
    for name in (
        "initialization_id",
        "prod_sn",
        "prod_line",
        "beam_altitude_angles",
        "lidar_origin_to_beam_origin_mm",
        "lidar_mode",
        "signal_multiplier",
    ):
        assert str(raised.value).count(name) == 1
    assert str(raised.value).count("must") == 8


@pytest.mark.parametrize(
    ("text", "fault"), [("{", "must be JSON, got"), ("[1]", r"must be an object, got \[1\]"), ("[" * 100_000, "must be JSON, got")]
)
def test_other_texts_are_refused(text, fault):
    with pytest.raises(PacketError, match=f"Ouster metadata {fault}"):
        read_metadata(text)


def test_a_sensor_that_cannot_be_is_refused_with_every_fault():
    with pytest.raises(
        ValueError, match=r"prod_sn must be digits.*; lidar_mode must be one of.*; imu_to_sensor_transform must have 16 numbers, got 1"
    ):
        sensor(serial="-1", lidar_mode="1x1", imu_to_sensor=(1.0,))


def test_bounds_of_numbers_are_accepted_and_one_more_is_refused():
    for initialization_id in (0, (1 << 24) - 1):
        assert sensor(initialization_id=initialization_id).initialization_id == initialization_id
    assert sensor(serial=str((1 << 40) - 1)).serial == "1099511627775"
    with pytest.raises(ValueError, match=r"image_rev must be of a firmware before 3\.3\.0, got 3\.3\.0"):
        sensor(image_rev="v3.3.0")


def test_modes_are_columns_and_turns_a_second():
    found = [(mode, sensor(mode=mode)) for mode in LIDAR_MODES]
    assert [f"{each.columns_per_frame}x{each.rate_hz}" for _, each in found] == [mode for mode, _ in found]
