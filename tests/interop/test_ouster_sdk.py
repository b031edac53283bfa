"""The vendor's SDK reads hilsim's Ouster packets, metadata and points as they were made."""

import json

import numpy as np
import pytest

from hilsim.families.ouster.protocol.geometry import column_angles_rad, points_m
from hilsim.families.ouster.protocol.headers import ColumnField, HeaderField
from hilsim.families.ouster.protocol.imu import ACCEL_GYRO_NMEA, encode_imu_measurements, encode_imu_packet, imu_layout
from hilsim.families.ouster.protocol.metadata import LIDAR_MODES, metadata_document
from hilsim.families.ouster.protocol.metadata_reading import read_metadata
from hilsim.families.ouster.protocol.profiles import PROFILES, HeaderKind
from tests.interop.ouster_judge import judge
from tests.ouster_sensors import beams, columns_of, encoded, header_of, layout_of, random_pixels, sensor

SDK_NAMES = {"RANGE": "range_mm", "FLAGS": "flags", "REFLECTIVITY": "reflectivity", "SIGNAL": "signal", "NEAR_IR": "near_ir", "WINDOW": "window"}
HEADER_NAMES = {
    "packet_type": HeaderField.PACKET_TYPE,
    "frame_id": HeaderField.FRAME_ID,
    "init_id": HeaderField.INIT_ID,
    "prod_sn": HeaderField.SERIAL,
    "alert_flags": HeaderField.ALERT_FLAGS,
    "countdown_thermal_shutdown": HeaderField.SHUTDOWN_COUNTDOWN_S,
    "countdown_shot_limiting": HeaderField.LIMITING_COUNTDOWN_S,
    "thermal_shutdown": HeaderField.THERMAL_SHUTDOWN,
    "shot_limiting": HeaderField.SHOT_LIMITING,
}
ALERTS = {"alert_flags": 0x98, "shutdown_countdown_s": 30, "limiting_countdown_s": 29, "thermal_shutdown": 1, "shot_limiting": 1}
VERSIONS = ("2.5.2", "3.1.0", "3.2.0")
CASES = [(profile, channels, VERSIONS[number % 3]) for number, (profile, channels) in enumerate((p, c) for p in PROFILES for c in (32, 64, 128))]
CASES += [("RNG19_RFL8_SIG16_NIR16", 32, "3.2.0", HeaderKind.FUSA), ("FUSA_RNG15_RFL8_NIR8_DUAL", 32, "3.2.0", HeaderKind.STANDARD)]
PACKETS = 3


def text_of(metadata):
    return json.dumps(metadata_document(metadata))


def packets_of(profile, channels, version, header=None):
    """Metadata, and what was encoded: headers, columns, pixels and payloads."""
    metadata = sensor(profile, channels, version, header=header)
    generator = np.random.default_rng(channels)
    frame_id = 70_000 if metadata.profile.header is HeaderKind.FUSA else 4711
    header = header_of(metadata, frame_id, **ALERTS)
    columns = [columns_of(metadata.profile, first) for first in (0, 480, 1008)]
    pixels = [random_pixels(metadata.profile, channels, generator) for _ in range(PACKETS)]
    layout = layout_of(metadata)
    payloads = np.stack([encoded(layout, header, *packet) for packet in zip(columns, pixels, strict=True)])
    return metadata, header, columns, pixels, payloads


@pytest.fixture(scope="module")
def read_by_sdk():
    sent = [packets_of(*case) for case in CASES]
    answers = judge([{"metadata": text_of(each[0]), "lidar": each[-1]} for each in sent])
    return dict(zip(CASES, zip(sent, answers, strict=True), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(getattr(part, "name", part)) for part in case))
def test_the_sdk_reads_every_field_of_every_pixel_as_encoded(read_by_sdk, case):
    (metadata, _, _, pixels, payloads), answer = read_by_sdk[case]
    assert int(answer["size"]) == payloads.shape[1]
    names = {name.removeprefix("field.") for name in answer if name.startswith("field.") and "RAW" not in name}
    for name in names:
        kind, number = (name[:-1], 1) if name.endswith("2") else (name, 0)
        for packet, values in enumerate(pixels):
            expected = getattr(values, SDK_NAMES[kind])[number].T  # the SDK's fields are [channel, column]
            np.testing.assert_array_equal(answer[f"field.{name}"][packet], expected, err_msg=name)
    assert {f"{field.kind.name}{'2' if field.return_number else ''}" for field in metadata.profile.fields} == names


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(getattr(part, "name", part)) for part in case))
def test_the_sdk_reads_headers_as_encoded_and_its_crc_agrees(read_by_sdk, case):
    (metadata, header, columns, _, _), answer = read_by_sdk[case]
    read = {"frame_id": HeaderField.FRAME_ID} if metadata.profile.header is HeaderKind.NONE else HEADER_NAMES
    assert {name: answer[f"header.{name}"].tolist() for name in read} == {name: [header[field]] * PACKETS for name, field in read.items()}
    for kind in (ColumnField.TIMESTAMP_NS, ColumnField.MEASUREMENT_ID, ColumnField.STATUS):
        found = answer[f"column.{kind.name.removesuffix('_NS')}"]
        np.testing.assert_array_equal(found, np.stack([each[:, kind] for each in columns]))
    written, calculated = answer["crc"].T
    if metadata.profile.header is HeaderKind.STANDARD and not metadata.lidar_profile.startswith("FUSA"):
        np.testing.assert_array_equal(written, calculated)
        assert written.all()
    else:
        assert not written.any()  # FUSA packets have none, and the SDK reads none of that profile


IMU_FORM = {"imu_measurements_per_packet": 8, "imu_packets_per_frame": 8}


def issues_of(metadata):
    return [json.loads(str(answer["issues"])) for answer in judge([{"metadata": text_of(each)} for each in metadata])]


def test_the_sdk_finds_no_fault_in_our_metadata():
    for issues in issues_of([sensor(profile, 64, version, mode) for profile in PROFILES for version in VERSIONS for mode in LIDAR_MODES]):
        assert (issues["accepted"], issues["critical"], issues["warning"]) == (True, [], [])


def test_the_sdk_misses_no_key_of_the_newest_firmware():
    (issues,) = issues_of([sensor(version="3.2.0", imu_profile=ACCEL_GYRO_NMEA, imu_data_format=IMU_FORM, user_data="")])
    assert [word for word in issues["information"] if "ouster-sdk" not in word] == []


@pytest.mark.parametrize("name", ["OS-0-32-U1_v2.2.0_1024x10.json", "OS-2-128-U1_v2.3.0_1024x10.json", "same_ports_nonlegacy.1.json"])
def test_metadata_of_real_units_means_the_same_to_the_sdk_after_hilsim_read_and_wrote_it(capture, name):
    text = capture(f"ouster/{name}").read_text()
    metadata = read_metadata(text)
    ours, theirs = (json.loads(str(answer["info"])) for answer in judge([{"metadata": text_of(metadata)}, {"metadata": text}]))
    for group in ("sensor_info", "beam_intrinsics", "imu_intrinsics", "lidar_intrinsics", "lidar_data_format"):
        assert ours[group] == theirs[group]


TILTED = (0.0, 1.0, 0.0, 5.5, -0.6, 0.0, 0.8, -7.25, 0.8, 0.0, 0.6, 36.18, 0.0, 0.0, 0.0, 1.0)
HIGH = (1.0, 0.0, 0.0, 30.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 4.0, 0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("mode", "its_beams"),
    [("512x10", beams(64)), ("1024x10", beams(32)), ("512x20", beams(32, lidar_to_sensor=TILTED, beam_to_lidar=HIGH))],
    ids=["512", "1024", "tilted"],
)
def test_the_sdks_points_agree_to_the_rounding_of_floats(mode, its_beams):
    metadata = sensor(channels=its_beams.channels, mode=mode, beams=its_beams)
    range_mm = np.random.default_rng(1).integers(0, 300_000, (metadata.columns_per_frame, its_beams.channels), np.uint32)
    range_mm[::7] = 0
    (answer,) = judge([{"metadata": text_of(metadata), "range": range_mm.T.copy()}])
    points = points_m(range_mm, column_angles_rad(np.arange(metadata.columns_per_frame), metadata.columns_per_frame), its_beams)
    found = answer["points"].transpose(1, 0, 2)
    assert not found[range_mm == 0].any()
    np.testing.assert_allclose(found[range_mm > 0], points[range_mm > 0], rtol=0, atol=1e-10)


def test_the_sdk_reads_legacy_imu_packets_as_encoded():
    times_ns, acceleration = np.array([765_719_656_040, 10**18 + 1, 10**18 + 2]), np.array([0.25, -1.0, 1.021], np.float32)
    rate, payload = np.array([-250.5, 0.125, 3.3], np.float32), np.zeros(48, np.uint8)
    encode_imu_packet(times_ns, acceleration, rate, payload)
    (answer,) = judge([{"metadata": text_of(sensor()), "imu": payload[None]}])
    np.testing.assert_array_equal(answer["imu.times"][0], times_ns)
    np.testing.assert_array_equal(answer["imu.values"][0], np.concatenate([acceleration, rate]))


def test_the_sdk_reads_imu_packets_of_firmware_3_2_as_encoded():
    metadata = sensor(version="3.2.0", imu_profile=ACCEL_GYRO_NMEA, imu_data_format=IMU_FORM)
    layout = imu_layout(8, metadata.profile.header, metadata.footer)
    columns = np.stack([10**18 + 1_562_500 * np.arange(8), 31 + 32 * np.arange(8), np.ones(8, np.int64)], axis=1)
    acceleration, rate = np.random.default_rng(2).normal(size=(2, 8, 3)).astype(np.float32)
    payload, sentence = np.zeros(layout.size, np.uint8), b"$GPRMC,123519,A*00"
    header = header_of(metadata, 30_002, packet_type=2)
    encode_imu_measurements(layout, header, 77, np.frombuffer(sentence, np.uint8), columns, acceleration, rate, payload)
    (answer,) = judge([{"metadata": text_of(metadata), "imu": payload[None]}])
    for name, column in (("timestamp", 0), ("measurement_id", 1), ("status", 2)):
        np.testing.assert_array_equal(answer[f"imu.{name}"][0], columns[:, column], err_msg=name)
    np.testing.assert_array_equal(answer["imu.accel"][0], acceleration)
    np.testing.assert_array_equal(answer["imu.gyro"][0], rate)
    assert (answer["imu.frame_id"].tolist(), answer["imu.nmea_ts"].tolist(), str(answer["imu.nmea"][0])) == ([30_002], [77], sentence.decode())
