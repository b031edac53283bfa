"""Objects in recorded packets by several threads: the bytes and counts of one thread."""

import numpy as np
import pytest

from hilsim.emulator.insertion.insertion import Inserter
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, Product, ReturnMode
from hilsim.families.velodyne.protocol.geometry import VLP_16_GEOMETRY, vls_128_geometry
from hilsim.parts.replays.inserting.lanes import InsertionLanes
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import fixed_track
from tests.compiled import compiled_only
from tests.unit.emulator.test_insertion import packet, plate, velodyne, world

pytestmark = compiled_only
MS = 1_000_000
PACKETS = 400


def stream(mode, product, unit_m):
    """Packets of a head that turns back and forth before a wall; some are too short to be data packets."""
    drawn = np.random.default_rng(4)
    payloads, size = np.zeros((PACKETS, 1206), np.uint8), np.full(PACKETS, 1206, np.int32)
    for row in range(PACKETS):
        payloads[row] = packet(10.0, 12.0, mode=mode, product=product, unit_m=unit_m)
        data = payloads[row].view(DATA_PACKET_DTYPE)
        azimuth_cdeg = round(900.0 * np.sin(0.3 * row)) + int(drawn.integers(0, 300))
        data["blocks"]["azimuth"] = (azimuth_cdeg + np.arange(12) // 4) % 36_000
        data["timestamp"] = 50 * row
        if row % 48 in {0, 1, 47}:
            size[row] = 512
    return payloads, size


@pytest.mark.extended
@pytest.mark.parametrize(
    ("geometry", "mode", "product"),
    [(VLP_16_GEOMETRY, ReturnMode.STRONGEST, Product.VLP_16), (vls_128_geometry(55_296), ReturnMode.DUAL, Product.VLS_128)],
)
@pytest.mark.parametrize("threads", [2, 5])
def test_threads_write_what_one_writes(geometry, mode, product, threads):
    payloads, size = stream(mode, product, geometry.distance_unit_mm / 1000.0)
    unit = velodyne(geometry, no_return=np.zeros(128, np.uint8))
    at_ns = np.arange(PACKETS) * MS
    written, states = [], []
    for number in (1, threads):
        inserter = Inserter(unit, fixed_track(Pose()), world(plate(4.0, width_m=2.0)))
        lanes, done = InsertionLanes(inserter, number), payloads.copy()
        for half in (slice(0, 250), slice(250, PACKETS)):
            inserter.add(int(at_ns[half][60]), world(plate(3.0, width_m=1.0)))
            inserter.add(int(at_ns[half][130]), world(plate(5.0, width_m=3.0)))
            lanes.insert(done[half], 0, size[half], at_ns[half], at_ns[half], 1000 * at_ns[half])
        written.append(done)
        states.append(
            [inserter.count(what) for what in range(3)]
            + inserter.insertion.worlds.words.tolist()
            + inserter.insertion.workspace.recorded.state[:3].tolist()
            + [inserter.begun_ns(world_number) for world_number in range(4)]
        )
        inserter.close()
    np.testing.assert_array_equal(written[0], written[1])
    assert states[0] == states[1]
    assert states[0][0] > 1000
    is_touched = (written[0] != payloads).any(axis=1)
    assert 50 < is_touched.sum() < PACKETS
