"""A room with a lidar, its packets with and without faults, and what another decoder reads in them."""

import numpy as np
import velodyne_decoder

import hilsim
from tests.support import ROOM, write_rig

UNIT_M = 0.002
CYCLE_NS = 1_327_104


GPS = "gps = { latitude_deg = 36.8, longitude_deg = -2.4 }\n"


def room(directory, *tables, keys="", gps=GPS):
    """The room's rig with ``[[fault]]`` tables; ``keys`` are further ones of its sensor."""
    text = ROOM.replace(GPS, gps).replace('name = "lidar"', f'name = "lidar"\n{keys}')
    return hilsim.Emulator(hilsim.load_rig(write_rig(directory, text)), faults=tables)


def data(emulator, start_s=0.0, stop_s=0.2):
    """Payloads of data packets."""
    return [packet.payload for packet in emulator.packets(start_s, stop_s) if packet.stream == "data"]


def positions(emulator, start_s=0.0, stop_s=0.2):
    """Payloads of position packets."""
    return [packet.payload for packet in emulator.packets(start_s, stop_s) if packet.stream == "position"]


def records(payloads):
    """Azimuths ``int[n, 12]``, distances in metres and reflectivity bytes ``[n, 12, 2, 16]``: of block, firing sequence and laser, read by the manual's layout."""
    raw = np.stack([np.frombuffer(payload, np.uint8)[:1200] for payload in payloads]).astype(int).reshape(-1, 12, 100)
    record = raw[:, :, 4:].reshape(-1, 12, 2, 16, 3)
    return raw[:, :, 2] + 256 * raw[:, :, 3], (record[..., 0] + 256 * record[..., 1]) * UNIT_M, record[..., 2]


def stamps_us(payloads):
    """Stamps of data packets."""
    return np.array([int.from_bytes(payload[1200:1204], "little") for payload in payloads])


def decoded(payloads):
    """Points of whole turns by velodyne-decoder: ``float[n, 8]`` of x, y, z, intensity, time, column, ring, return."""
    decoder = velodyne_decoder.StreamDecoder(velodyne_decoder.Config(model=velodyne_decoder.Model.VLP16))
    scans = [decoder.decode(number * CYCLE_NS / 1e9, payload) for number, payload in enumerate(payloads)]
    return np.concatenate([np.asarray(scan[1]) for scan in scans if scan is not None])
