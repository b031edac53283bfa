"""How data packets follow each other: over the hour, over gaps, and however they are cut into runs."""

import numpy as np
import pytest

from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from hilsim.families.velodyne.protocol.models import VLP_16
from hilsim.families.velodyne.stream import packet_run, stacked_packets, whole_cycles
from hilsim.units import HOUR_US, TURN_CDEG

CYCLE_US = VLP_16.cycle_us(is_dual=False)


def packets(count, *, start_us=0, start_cdeg=0, step_cdeg=40):
    """Regular packets with an azimuth for each block."""
    made = np.zeros(count, DATA_PACKET_DTYPE)
    made["timestamp"] = (start_us + np.arange(count) * CYCLE_US).astype(np.int64) % HOUR_US
    made["blocks"]["azimuth"] = (start_cdeg + np.arange(12 * count).reshape(count, 12) * step_cdeg) % TURN_CDEG
    return made


def runs(stream, borders):
    before = None
    for piece in np.split(stream, borders):
        run = packet_run(piece, before)
        before = run.last()
        yield run


@pytest.mark.parametrize("group_blocks", [1, 2, 4])
@pytest.mark.parametrize("borders", [[], [1], [3, 4, 9], list(range(1, 20))])
def test_steps_do_not_depend_on_how_packets_are_cut_into_runs(borders, group_blocks):
    stream = packets(20, start_us=HOUR_US - 5000, start_cdeg=35_000)
    stream["blocks"]["azimuth"][5, 4:] += 9000  # a gap inside a packet
    stream["blocks"]["azimuth"][8:] = (stream["blocks"]["azimuth"][8:] + 18_000) % TURN_CDEG  # and one between two
    whole = packet_run(stream, None)
    cut = list(runs(stream, borders))
    for name in ("step_us", "knows_step"):
        np.testing.assert_array_equal(np.concatenate([getattr(run, name) for run in cut]), getattr(whole, name))
    np.testing.assert_array_equal(np.concatenate([run.is_next(CYCLE_US) for run in cut]), whole.is_next(CYCLE_US))
    of_whole, of_cut = whole.azimuth_steps(group_blocks), [run.azimuth_steps(group_blocks) for run in cut]
    for name in ("step_cdeg", "turned_cdeg", "after_gap", "is_gap", "has_gap"):
        np.testing.assert_array_equal(np.concatenate([getattr(steps, name) for steps in of_cut]), getattr(of_whole, name), err_msg=name)


def test_a_stream_that_passes_the_hour_and_azimuth_0_goes_on_without_a_break():
    run = packet_run(packets(50, start_us=HOUR_US - 20_000, start_cdeg=33_000), None)
    assert run.stamp_us.min() < 20_000
    assert not run.knows_step[0]
    assert run.is_next(CYCLE_US)[1:].all()
    assert set(run.step_us[1:].tolist()) == {1327, 1328}
    steps = run.azimuth_steps()
    assert (steps.step_cdeg.ravel()[1:] == 40).all()
    assert (steps.turned_cdeg[1:] == 480).all()
    assert not steps.is_gap.any()


def test_a_gap_is_reported_its_group_its_packet_and_the_packet_after():
    stream = packets(6)
    stream["blocks"]["azimuth"][2, 7:] += 18_000
    stream["blocks"]["azimuth"][3:] += 18_000
    steps = packet_run(stream, None).azimuth_steps()
    assert np.argwhere(steps.is_gap).tolist() == [[2, 7]]
    assert steps.step_cdeg[2, 7] == 40 - 18_000
    assert np.flatnonzero(steps.has_gap).tolist() == [2]
    assert np.flatnonzero(steps.after_gap).tolist() == [3]


def test_lost_repeated_and_overtaken_packets_are_not_the_next_ones():
    stream = packets(12)[[0, 1, 2, 5, 5, 6, 4, 7]]
    run = packet_run(stream, None)
    assert np.flatnonzero(run.is_next(CYCLE_US)).tolist() == [1, 2, 5]
    cycles, off_us = whole_cycles(run.step_us, CYCLE_US)
    assert cycles.tolist() == [0, 1, 1, 3, 0, 1, -2, 3]
    assert off_us.max() < 1.0


def test_payloads_are_stacked_as_they_are():
    stream = packets(3)
    np.testing.assert_array_equal(stacked_packets(row.tobytes() for row in stream), stream)
