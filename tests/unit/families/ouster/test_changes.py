"""An Ouster that is initialised anew while it is rendered: its packets end and begin with whole turns, with another number and other settings."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.families.ouster.protocol.lidar import decode_lidar_packets
from hilsim.sensor.optics.window import WindowSpec
from tests.compiled import compiled_only
from tests.unit.families.ouster.test_lidar import FRAME_NS, ouster

DUAL = "RNG19_RFL8_SIG16_NIR16_DUAL"
AT_NS = 115_000_000


def changed(lidar, at_ns, **settings):
    """A lidar that takes other settings at a rig time."""
    setting = lidar.setting
    setup = replace(setting.setup, ouster=replace(setting.setup.ouster, **settings)) if settings else setting.setup
    before = lidar.later[-1].lidar if lidar.later else lidar
    return replace(lidar, later=(*lidar.later, before.followed_by(replace(lidar, setting=replace(setting, setup=setup), later=()), at_ns)))


def decoded(lidar, batch, rows):
    layout = lidar.plan.own.layout
    return decode_lidar_packets(batch.payload[rows][:, : layout.size], lidar.setting.family.setting.profile, layout)


@pytest.mark.extended
@compiled_only
@pytest.mark.parametrize(
    "after",
    [
        {"lidar_mode": "1024x20", "udp_profile_lidar": DUAL},
        {"lidar_mode": "2048x10", "udp_profile_lidar": "LEGACY"},
        {"azimuth_window_mdeg": (90_000, 270_000)},
        {"timestamp_mode": "TIME_FROM_PTP_1588"},
        {},
    ],
)
def test_packets_of_before_end_and_those_of_after_begin_with_turn_0(after):
    base = ouster(lidar_mode="512x10", initialization_id=70)
    lidar = changed(base, AT_NS, initialization_id=71, **after)
    later = lidar.later[0].lidar
    batch = lidar.data_span(0, 3 * FRAME_NS)
    is_later = np.arange(len(batch.size)) >= later.plan.origin_packet
    assert (np.diff(batch.deadline_ns) > 0).all()
    assert batch.deadline_ns[~is_later][-1] < AT_NS + 10_000_000
    before, then = decoded(base, batch, ~is_later), decoded(later, batch, is_later)
    assert set(before.headers["init_id"].tolist()) == {70}
    assert set(then.headers["init_id"].tolist()) <= {71, 0}  # LEGACY packets have none
    rate_hz = later.setting.family.setting.rate_hz
    turns = int(0.1 * rate_hz)  # it begins with the first turn after the change: at 150 or 200 ms
    assert sorted(set(then.headers["frame_id"].tolist())) in (list(range(turns)), list(range(turns + 1)))
    first = int(then.columns["measurement_id"][0, 0])
    assert first == later.setting.family.setting.sent_packets[0] * 16
    begun_ns = int(batch.deadline_ns[is_later][0]) - later.plan.data_latency_ns - (first + 16) * later.plan.sequence_ns
    assert abs(begun_ns - 1e9 / rate_hz * -(-AT_NS * rate_hz // 10**9)) < 10_000  # the oscillator


@compiled_only
def test_what_a_packet_holds_does_not_depend_on_which_were_rendered_before():
    lidar = changed(ouster(lidar_mode="512x10", initialization_id=70), AT_NS, initialization_id=71, udp_profile_lidar=DUAL)
    whole = lidar.data_packets(30, 40)
    for packet in (34, int(lidar.later[0].lidar.plan.origin_packet), 60):
        np.testing.assert_array_equal(lidar.data_packets(packet, 1).payload[0], whole.payload[packet - 30])


@compiled_only
def test_a_change_that_is_none_of_its_settings_counts_turns_on():
    lidar = changed(ouster(lidar_mode="512x10", initialization_id=70), AT_NS, initialization_id=71)
    dirty = replace(lidar.setting, setup=replace(lidar.later[0].lidar.setting.setup, window=WindowSpec(soiling_transmission=0.5)))
    later = lidar.later[0].lidar.followed_by(replace(lidar, setting=dirty, later=()), 3 * FRAME_NS + 5_000_000)
    packets = decoded(later.lidar, replace(lidar, later=(*lidar.later, later)).data_packets(96, 40), slice(None))
    assert set(np.diff(packets.headers["frame_id"].astype(int)).tolist()) <= {0, 1}
    assert set(packets.headers["init_id"].tolist()) == {71}
    assert later.lidar.plan.own.frame_sequence == lidar.later[0].lidar.plan.own.frame_sequence
