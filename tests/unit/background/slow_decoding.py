"""Returns of Velodyne data packets by cell, decoded with plain NumPy: slowly, and not with the code under test."""

import numpy as np

from hilsim.families.velodyne.protocol.data import decode_data_packets


def returns_by_cell(payloads, geometry, columns):
    """Row, column, distance (mm) and reflectivity of every return of ``uint8[n, 1206]``; and row and column of firings without one.

    Copies in dual packets are left out. Every packet must be of one mode, with neighbouring azimuths no farther apart than a head turns.
    """
    packets = decode_data_packets(np.ascontiguousarray(payloads))
    lasers = len(geometry.elevation_deg)
    per_block = 32 // lasers
    per_firing = 2 if packets["return_mode"][0] == 0x39 else 1
    azimuth = packets["blocks"]["azimuth"][:, ::per_firing].astype(np.int64)
    step = np.diff(azimuth, axis=1) % 36_000
    assert step.max() < 400
    step = np.concatenate([step, step[:, -1:]], axis=1)
    time_ns = (np.arange(per_block)[:, None] * geometry.sequence_ns + np.array(geometry.delay_ns)[None, :]).reshape(-1)
    share = time_ns / (per_block * geometry.sequence_ns)
    offset = np.tile(np.array(geometry.azimuth_offset_deg) * 100, per_block)
    fired = azimuth[:, :, None] + step[:, :, None] * share + offset
    column = np.minimum((fired % 36_000 * columns / 36_000).astype(np.int64), columns - 1)
    row = np.broadcast_to(np.tile(np.argsort(np.argsort(geometry.elevation_deg)), per_block), column.shape)
    records = packets["blocks"]["channels"].reshape(len(packets), 12 // per_firing, per_firing, 32)
    distance = records["distance"].astype(np.int64)
    reflectivity = records["reflectivity"]
    is_return = distance > 0
    if per_firing == 2:
        is_return[:, :, 1] &= (distance[:, :, 1] != distance[:, :, 0]) | (reflectivity[:, :, 1] != reflectivity[:, :, 0])
    spread = np.broadcast_to(row[:, :, None], distance.shape), np.broadcast_to(column[:, :, None], distance.shape)
    distance_mm = np.floor(distance * geometry.distance_unit_mm + 0.5).astype(np.int64)
    is_empty = (distance == 0).all(axis=2)
    return (
        (spread[0][is_return], spread[1][is_return], distance_mm[is_return], reflectivity[is_return].astype(np.int64)),
        (row[is_empty], column[is_empty]),
    )
