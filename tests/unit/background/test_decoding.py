"""Packets into counts: every return once, in the cell where its laser fired; held against plain NumPy and what is known of real captures."""

import numpy as np
import pytest

from hilsim.capture.batches import CaptureBatches
from hilsim.families.cepton.background.points import add_points, build_image_plan, widen
from hilsim.families.cepton.protocol.stdv import PointFlag
from hilsim.families.velodyne.background import VelodyneSource, add_data_packets, build_turning_plan
from hilsim.families.velodyne.protocol.geometry import HDL_32E_GEOMETRY, VLP_32C_GEOMETRY
from hilsim.read.background.table import BINS, COUNT, EMPTY, FOREIGN, KEY, OUTSIDE, PACKETS, RETURNS, TALLY_SIZE, bin_of, empty_table, grown, in_order
from hilsim.world.scene.background import AzimuthGrid, ImageGrid
from tests.unit.background.backgrounds import beyond_mm
from tests.unit.background.recordings import VLP16, batch, stdv_payload, vlp16_payloads
from tests.unit.background.slow_decoding import returns_by_cell

COLUMNS = 1800


def decoded(batches, geometry, product, columns=COLUMNS):
    grid = AzimuthGrid(columns=columns, elevation_deg=geometry.rows_deg)
    plan = build_turning_plan(geometry, grid, product)
    table, tally = empty_table(grid.rows * grid.columns), np.zeros(TALLY_SIZE, np.int64)
    for some in batches:
        at = 0
        while (at := add_data_packets(plan, some, VelodyneSource.recognise(some), at, table, tally)) < some.start.size:
            table = grown(table)
    return in_order(table), tally


def expected_rows(returns, empty, rows_of_grid):
    row, column, distance_mm, reflectivity = returns
    key = (column * rows_of_grid + row) * BINS + np.array([bin_of(int(distance)) for distance in distance_mm])
    best = distance_mm << 10 | reflectivity
    keys = np.concatenate([key, (empty[1] * rows_of_grid + empty[0]) * BINS])
    order, where = np.unique(keys, return_inverse=True)
    farthest, count = np.zeros(len(order), np.int64), np.bincount(where)
    np.maximum.at(farthest, where[: len(key)], best)
    total = np.zeros(len(order), np.int64)
    np.add.at(total, where[: len(key)], [beyond_mm(distance) for distance in distance_mm])
    return np.stack([order, farthest, count, total], axis=1)


@pytest.mark.parametrize(
    ("name", "geometry", "product", "returns"),
    [
        ("vlp16_dual.pcap", VLP16, 0x22, 59_414),
        ("vlp16_strongest_1200rpm.pcap", VLP16, 0x21, None),
        ("hdl32e_strongest.pcap", HDL_32E_GEOMETRY, 0x21, 872_800),
    ],
)
def test_real_captures_are_decoded_as_plain_numpy_and_velodyne_decoder_do(capture, name, geometry, product, returns):
    batches = list(CaptureBatches(capture(name)))
    rows, tally = decoded(batches, geometry, product)
    payloads = [some.data[start : start + 1206] for some in batches for start in some.start[VelodyneSource.recognise(some)]]
    by_cell, empty = returns_by_cell(np.array(payloads), geometry, COLUMNS)
    np.testing.assert_array_equal(rows, expected_rows(by_cell, empty, len(geometry.rows_deg)))
    assert tally[PACKETS] == len(payloads)
    assert tally[RETURNS] == len(by_cell[0])
    assert returns is None or tally[RETURNS] == returns


def test_a_field_of_view_that_jumps_inside_a_packet_puts_no_return_into_the_gap(capture):
    rows, tally = decoded(CaptureBatches(capture("vlp32c_strongest_fov.pcap")), VLP_32C_GEOMETRY, 0x28)
    columns = np.unique(rows[:, KEY] // BINS // 32)
    assert tally[RETURNS] == 131_305
    # 270 to 90 degrees, and lasers look up to 4.2 degrees beside
    assert set(columns[(columns > 480) & (columns < 1320)]) == set()


def test_a_firing_falls_into_the_column_of_its_own_time():
    # a block turns 40 cdeg: its second sequence begins 20 cdeg on, its last laser 12.5 cdeg later
    rows, _ = decoded([batch(vlp16_payloads(1))], VLP16, 0x22, columns=36_000)
    cells = rows[:, KEY] // BINS
    highest = sorted(int(cell) // 16 for cell in cells if cell % 16 == 15)  # laser 15
    delay = 40 * 15 * 2304 / 110_592
    assert highest == [int(40 * block + delay + half) for block in range(1, 13) for half in (0, 20)]


def test_both_returns_of_a_dual_packet_count_and_a_copy_does_not():
    payloads = vlp16_payloads(2, mode=0x39)
    near = bytearray(payloads[1])
    near[104:106] = (3000).to_bytes(2, "little")  # block 1, record 0: the strongest return is nearer
    rows, tally = decoded([batch([payloads[0], bytes(near)])], VLP16, 0x22)
    assert tally[RETURNS] == 2 * 6 * 32 + 1
    assert rows[:, COUNT].sum() == tally[RETURNS]
    assert 6000 in rows[:, 1] >> 10


def test_firings_without_a_return_and_packets_of_another_model_are_distinguished():
    nothing = vlp16_payloads(1, distance=lambda *_: 0)
    rows, tally = decoded([batch([*nothing, *vlp16_payloads(1, product=0x28)])], VLP16, 0x22)
    assert (tally[PACKETS], tally[RETURNS], tally[EMPTY], tally[FOREIGN]) == (1, 0, 384, 1)
    assert (rows[:, KEY] % BINS == 0).all()
    assert rows[:, COUNT].sum() == 384


def test_points_fall_into_image_cells_and_flagged_ones_into_none():
    grid = ImageGrid(columns=11, rows=5, x_min=-1.0, x_max=1.0, z_min=-0.5, z_max=0.5)
    points = [(0, 2000, 0, 40, 8, 0), (2000, 2000, 1000, 50, 8, 4), (-2000, 2000, -1000, 60, 8, 0), (3000, 2000, 0, 1, 8, 0)]
    points += [(0, 2000, 0, 99, 8, flag) for flag in (PointFlag.NO_RETURN, PointFlag.NOISE, PointFlag.BLOCKED)] + [(5, 0, 5, 99, 8, 0)]
    some = batch([stdv_payload(points)])
    table, tally = empty_table(55), np.zeros(TALLY_SIZE, np.int64)
    add_points(build_image_plan(grid), some, np.array([True]), 0, table, tally)
    rows = in_order(table)
    assert (tally[RETURNS], tally[EMPTY], tally[OUTSIDE]) == (3, 4, 1)
    assert [(int(key) // BINS // 5, int(key) // BINS % 5) for key in rows[:, KEY]] == [(0, 0), (5, 2), (10, 4)]
    assert (rows[:, 1] >> 10).tolist() == [15_000, 10_000, 15_000]
    assert (rows[:, 1] & 1023).tolist() == [60, 40, 50]
    extent = np.array([np.inf, -np.inf, np.inf, -np.inf])
    widen(some, np.array([True]), extent)
    assert extent.tolist() == [-1.0, 1.5, -0.5, 0.5]


@pytest.mark.parametrize("size", [0, 19, 23, 40])
def test_a_packet_whose_points_are_not_all_there_has_none(size):
    grid = ImageGrid(columns=3, rows=3, x_min=-1.0, x_max=1.0, z_min=-1.0, z_max=1.0)
    some = batch([stdv_payload([(0, 2000, 0, 40, 8, 0)] * 3)[:size]])
    table, tally = empty_table(9), np.zeros(TALLY_SIZE, np.int64)
    add_points(build_image_plan(grid), some, np.array([True]), 0, table, tally)
    assert tally[RETURNS] == 0
