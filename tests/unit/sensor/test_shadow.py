"""The receiver beside the beam: a near surface hides from it what the beam hits behind."""

import numpy as np
import pytest

from hilsim.sensor.echoes import ENERGY, RANGE, RAY, allocate_hits, sole_echo
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.signal import losses
from hilsim.sensor.specs import BeamSpec
from tests.compiled import compiled_only

SEED = np.uint64(3)
RECEIVER = 2


def hits_at(beam_m, receiver_m=None):
    """Two rays of the beam, and the receiver's axis."""
    ranges_m = [*beam_m] + ([receiver_m] if receiver_m else [])
    hits = allocate_hits(1, 3)
    hits.hit_count[0], hits.what[0, :, RAY] = len(ranges_m), range(3)
    hits.value[0, : len(ranges_m), RANGE] = ranges_m
    hits.value[0, :2, ENERGY] = 1.0
    return hits


def hidden_share(beam_m, receiver_m, draws):
    found = []
    for index in range(draws):
        hits = hits_at(beam_m, receiver_m)
        is_hidden = losses.hide_far_hits(RECEIVER, SEED, 1, index, hits.hit_count[0], hits.value, hits.what, 0)
        assert is_hidden == (sole_echo(hits.hit_count[0], hits.value, hits.what, 0, 1.2)[0] == 0)
        found.append(is_hidden)
    return np.mean(found)


def test_the_receivers_axis_is_a_ray_without_light():
    beam = build_beam(BeamSpec(window_h_mm=9.5, window_v_mm=12.7, receiver_offset_mm=16.0), 7)
    assert (beam.receiver, beam.share.size, beam.share[7]) == (7, 8, 0.0)
    assert beam.share.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(beam.offset_m[7], (0.016, 0.0))
    assert beam.width_m == pytest.approx(0.016)
    assert build_beam(BeamSpec(), 7).receiver == -1


@compiled_only
@pytest.mark.parametrize(("near_m", "far_m", "share"), [(1.0, 4.0, 0.75), (3.0, 4.0, 0.25), (3.9, 4.0, 0.0), (5.0, 4.0, 0.0)])
def test_a_near_surface_hides_a_share_of_the_offset(near_m, far_m, share):
    assert hidden_share((far_m, far_m), near_m, 4000) == pytest.approx(share, abs=0.03)


def test_nothing_before_the_receiver_hides_nothing():
    hits = hits_at((4.0, 4.0))
    assert not losses.hide_far_hits(RECEIVER, SEED, 1, 0, hits.hit_count[0], hits.value, hits.what, 0)
