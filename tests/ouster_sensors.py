"""Made-up Ouster sensors, and packets of random content for them."""

import numpy as np

from hilsim.families.ouster.protocol.firmware import find_firmware, pixel_shifts
from hilsim.families.ouster.protocol.geometry import Beams, offset_transform
from hilsim.families.ouster.protocol.headers import COLUMNS, ColumnField, HeaderField
from hilsim.families.ouster.protocol.lidar import encode_lidar_packet, lidar_layout
from hilsim.families.ouster.protocol.metadata import SensorMetadata, default_settings, mode_numbers
from hilsim.families.ouster.protocol.pixels import allocate_pixels
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET

IMAGE = "ousteros-image-prod-{generation}-v{version}+20240101000000"


def image_rev(version):
    return IMAGE.format(generation="aries" if version.startswith("2") else "bootes", version=version)


LIDAR_TO_SENSOR, BEAM_TO_LIDAR = offset_transform(0.0, 0.0, 38.195, is_reversed=True), offset_transform(16.721, 0.0, 0.0)


def beams(channels, *, lidar_to_sensor=LIDAR_TO_SENSOR, beam_to_lidar=BEAM_TO_LIDAR):
    """Beams like those of an OS1, from the top one down."""
    place = np.linspace(1.0, -1.0, channels)
    return Beams(
        elevation_deg=tuple((22.587 * place - 1.294 * place**3 + 0.187 * place**5).round(2).tolist()),
        azimuth_deg=tuple(np.resize([4.26, 1.42, -1.42, -4.26], channels).tolist()),
        beam_to_lidar=beam_to_lidar,
        lidar_to_sensor=lidar_to_sensor,
    )


def sensor(profile="RNG19_RFL8_SIG16_NIR16", channels=32, version="3.1.0", mode="1024x10", **changes):
    """Metadata of an OS1."""
    firmware = find_firmware(image_rev(version))
    its_beams = changes.pop("beams", beams(channels))
    facts = {
        "prod_line": f"OS-1-{channels}",
        "serial": "122247000785",
        "image_rev": image_rev(version),
        "prod_pn": "840-000000-00",
        "build_rev": f"v{version}",
        "build_date": "2024-01-01T00:00:00Z",
        "initialization_id": 0xABCDE,
        "beams": its_beams,
        "imu_to_sensor": offset_transform(-2.441, -9.725, 7.533),
        "lidar_mode": mode,
        "lidar_profile": profile,
        "pixel_shift_by_row": pixel_shifts(its_beams.azimuth_deg, mode_numbers(mode)[0], firmware, "OS-1"),
        "settings": default_settings(firmware, "127.0.0.1"),
    }
    return SensorMetadata(**(facts | changes))


def random_pixels(profile, channels, generator):
    """Pixels whose values a profile carries unchanged; what it does not carry is 0."""
    pixels = allocate_pixels(profile, channels)
    for field in profile.fields:
        place = pixels[field.kind][field.return_number]
        place[:] = generator.integers(0, 1 << field.width, place.shape) * field.scale
    return pixels


def header_of(metadata, frame_id=4711, **fields):
    """``int64[10]`` of a lidar packet; ``fields`` by the names of ``HeaderField`` in lower case."""
    header = np.zeros(len(HeaderField), np.int64)
    values = {"packet_type": 1, "frame_id": frame_id, "init_id": metadata.initialization_id, "serial": int(metadata.serial)} | fields
    for name, value in values.items():
        header[HeaderField[name.upper()]] = value
    return header


def columns_of(profile, first, start_ns=1_700_000_000_123_456_789):
    """``int64[16, 4]`` of valid columns."""
    ids = first + np.arange(COLUMNS_PER_PACKET)
    columns = np.zeros((COLUMNS_PER_PACKET, len(ColumnField)), np.int64)
    columns[:, ColumnField.TIMESTAMP_NS] = start_ns + 97_656 * ids
    columns[:, ColumnField.MEASUREMENT_ID] = ids
    columns[:, ColumnField.STATUS] = COLUMNS[profile.header].valid_status
    columns[:, ColumnField.ENCODER_COUNT] = 88 * ids
    return columns


def layout_of(metadata):
    return lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)


def encoded(layout, header, columns, pixels):
    """``uint8[size]``; the array held other bytes before."""
    payload = np.full(layout.size, 0xAA, np.uint8)
    encode_lidar_packet(layout, header, columns, pixels, payload)
    return payload
