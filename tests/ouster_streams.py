"""Made-up streams of Ouster sensors, with the stamps, spacing and pixels of real units as far as rules and figures depend on them."""

import json
from dataclasses import replace

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import PcapWriter
from hilsim.families.ouster.protocol.firmware import Firmware
from hilsim.families.ouster.protocol.headers import COLUMNS, ColumnField
from hilsim.families.ouster.protocol.imu import encode_imu_packet
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.families.ouster.protocol.pixels import allocate_pixels
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, FieldKind
from hilsim.protocols.ethernet import HEADER_SIZE, PLAIN_STYLE, build_framing, write_headers
from hilsim.protocols.flow_key import FlowKey
from tests.ouster_sensors import encoded, header_of, layout_of

SOURCE, DESTINATION = "10.5.5.86", "10.5.5.1"
LIDAR_PORT, IMU_PORT = 7502, 7503
BASE_NS = 1_700_000_000_000_000_000
LATENCY_NS = 200_000
MTU = 1500
SPREAD_NS = 1600.0


def column_times(metadata, first, count, generator):
    """``int64[count]``: stamps of the columns from number ``first`` on, scattered about the nominal period and on the firmware's grid."""
    period_ns = 1e9 / (metadata.columns_per_frame * metadata.rate_hz)
    grid_ns = 8 if metadata.firmware >= Firmware(3, 0) else 10
    exact = 500_000_000_000 + period_ns * (first + np.arange(count)) + generator.normal(0.0, SPREAD_NS / 2**0.5, count)
    return np.rint(exact / grid_ns).astype(np.int64) * grid_ns


def pixels_of(metadata, generator):
    """Pixels like measured ones: a third without a return, near infrared everywhere, a weaker second return behind some first ones."""
    profile, channels = metadata.profile, metadata.beams.channels
    pixels = allocate_pixels(profile, channels)
    for number in range(profile.returns):
        place = pixels.range_mm[number]
        is_return = generator.random(place.shape) < (0.66 if number == 0 else 0.1)
        if number:
            is_return &= pixels.range_mm[0] > 0
        nearest, farthest = (100, 16_000) if number == 0 else (20, 4000)
        place[:] = np.where(is_return, pixels.range_mm[0] * number + generator.integers(nearest, farthest, place.shape) * 8, 0)
        strength = generator.integers(20, 200, place.shape) // (1 + number)
        pixels.reflectivity[number] = np.where(is_return, generator.integers(2, 60, place.shape), 0)
        pixels.signal[number] = np.where(is_return, strength, generator.integers(2, 6, place.shape) if number == 0 else 0)
    if profile.returns == 2:
        pixels.signal[1] = np.where(pixels.range_mm[1] > 0, np.minimum(pixels.signal[0], pixels.signal[1]), 0)
    pixels.near_ir[:] = generator.integers(10, 250, pixels.near_ir.shape) * 16
    for kind in FieldKind:
        if not profile.carries(kind):
            pixels[kind][:] = 0
    return pixels


def _in_window(ids, window):
    first, last = window
    return (ids >= first) & (ids <= last) if first <= last else (ids >= first) | (ids <= last)


def lidar_payloads(metadata, frames=1, *, first_frame=4711, seed=1):
    """``(last stamp, payload)`` of each packet of whole frames that the sensor sends."""
    generator, layout = np.random.default_rng(seed), layout_of(metadata)
    columns_per_frame = metadata.columns_per_frame
    stamps = column_times(metadata, 0, frames * columns_per_frame, generator).reshape(frames, columns_per_frame)
    frame_ids = 1 << (32 if metadata.profile.header.name == "FUSA" else 16)
    found = []
    for frame in range(frames):
        header = header_of(metadata, (first_frame + frame) % frame_ids)
        for first in range(0, columns_per_frame, COLUMNS_PER_PACKET):
            ids = first + np.arange(COLUMNS_PER_PACKET)
            is_inside = _in_window(ids, metadata.window)
            if not is_inside.any():
                continue
            columns = np.zeros((COLUMNS_PER_PACKET, len(ColumnField)), np.int64)
            columns[:, ColumnField.TIMESTAMP_NS] = stamps[frame, ids]
            columns[:, ColumnField.MEASUREMENT_ID] = ids
            columns[:, ColumnField.STATUS] = is_inside * COLUMNS[metadata.profile.header].valid_status
            columns[:, ColumnField.ENCODER_COUNT] = ids * (90_112 // columns_per_frame)
            some = pixels_of(metadata, generator)
            shown = type(some)(*(np.where(is_inside[None, :, None], values, 0).astype(values.dtype) for values in some))
            found.append((int(stamps[frame, ids[-1]]), encoded(layout, header, columns, shown).tobytes()))
    return found


def imu_payloads(duration_ns, *, first_ns=500_003_000_000, seed=2):
    """``(stamp, payload)`` of LEGACY IMU packets, a hundred a second."""
    generator, found = np.random.default_rng(seed), []
    for number in range(int(duration_ns // 10_000_000)):
        diagnostic_ns = first_ns + 10_000_000 * number
        times = np.array([diagnostic_ns, diagnostic_ns + 213_920, diagnostic_ns + 435_140])
        acceleration = (np.array([40, 440, 4170]) + generator.integers(-40, 40, 3)) / np.float32(4096)
        rate = generator.integers(-80, 80, 3) * np.float32(250 / 32768)
        payload = np.zeros(48, np.uint8)
        encode_imu_packet(times, acceleration.astype(np.float32), rate.astype(np.float32), payload)
        found.append((int(diagnostic_ns), payload.tobytes()))
    return found


def stream(metadata, frames=1, *, has_imu=True, source=SOURCE, first_frame=4711, seed=1, oui="bc:0f:a7"):
    """Datagrams of a sensor in the order of their arrival, with the headers of its own network stack."""
    lidar = [(LIDAR_PORT, 49_290, *each) for each in lidar_payloads(metadata, frames, first_frame=first_frame, seed=seed)]
    imu = [(IMU_PORT, 51_514, *each) for each in imu_payloads(frames * 1e9 / metadata.rate_hz)] if has_imu else []
    packets = sorted(lidar + imu, key=lambda each: each[2])
    begin_ns = packets[0][2]
    found = []
    for number, (port, source_port, stamp_ns, payload) in enumerate(packets):
        flow = FlowKey(source, source_port, DESTINATION, port)
        style = replace(PLAIN_STYLE, dont_fragment=len(payload) + 28 <= MTU)
        framing = build_framing(style, flow, source_mac=f"{oui}:00:80:73", destination_mac="02:00:00:00:00:01")
        frame = np.zeros(HEADER_SIZE + len(payload), np.uint8)
        frame[HEADER_SIZE:] = np.frombuffer(payload, np.uint8)
        write_headers(framing.template, 1000 + number, framing.udp_checksum, frame, len(payload))
        link = frame[:HEADER_SIZE].tobytes()
        found.append(CapturedDatagram(BASE_NS + stamp_ns - begin_ns + LATENCY_NS, *flow, payload, link, is_ethernet=True, frame=number + 1))
    return found


def write_capture(path, datagrams, *metadata):
    """Write a capture, and the metadata of its sensors beside it."""
    with PcapWriter(path) as writer:
        for datagram in datagrams:
            writer.write(datagram.host_stamp_ns, datagram.link + datagram.payload)
    for number, each in enumerate(metadata):
        name = path.with_suffix(".json") if len(metadata) == 1 else path.with_suffix(f".{number + 1}.json")
        name.write_text(json.dumps(metadata_document(each)))
    return path
