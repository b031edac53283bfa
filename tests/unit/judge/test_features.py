"""Features on synthetic captures whose answers are known, or computed in another way."""

import numpy as np
import pytest

from hilsim.families.velodyne.comparison.signal import Firings, find_patches
from tests.unit.families.velodyne.conformance.streams import BASELINE, vlp16
from tools.judge.capture_sample import STRETCH_PACKETS, sample_capture
from tools.judge.clock_features import clock_features
from tools.judge.feature_table import join_tables, table_of_rows
from tools.judge.loss_features import drop_out_features, edge_features, empty_features, scene_features
from tools.judge.signal_features import patch_features, signal_features


def sample(stream, name="x"):
    return sample_capture(stream.datagrams(), name=name)


def records(stream):
    return stream.data["blocks"]["records"]


def test_stretches_are_neighbouring_packets_spread_over_the_capture():
    captured = sample(vlp16(700))
    assert [len(block.run.packets) for block in captured.stretches] == [STRETCH_PACKETS] * 14 + [28]
    assert str(captured.setting) == "600 rpm strongest"
    assert sample(vlp16(300, dual=True)).setting.return_mode == "dual"


def test_a_long_capture_keeps_a_bounded_number_of_stretches():
    datagrams = vlp16(1000).datagrams()
    captured = sample_capture((entry for _ in range(6) for entry in datagrams), name="x")
    assert 60 <= len(captured.stretches) <= 97


def test_windows_of_the_clock_hold_72_groups_in_either_mode():
    single, dual = clock_features(sample(vlp16(480))), clock_features(sample(vlp16(960, dual=True)))
    assert len(single) == 10 * 15  # ten stretches of 48 packets, windows of six that overlap by a half
    assert len(dual) == 20 * 7
    for table in (single, dual):
        assert table.values("lags").shape == (len(table), 3)
        np.testing.assert_allclose(table.values("classes").sum(axis=1), 1.0)
        assert table.columns["lags.1"].mean() == pytest.approx(-0.5, abs=0.05)  # white noise of the angle


def test_a_window_without_noise_of_the_angle_has_residuals_of_rounding():
    exact = clock_features(sample(vlp16(480, noise=0.0)))
    assert exact.columns["residuals.sd"].mean() == pytest.approx(1 / np.sqrt(12), abs=0.02)
    assert exact.columns["stamps.sd"].mean() < 0.4


def test_lost_packets_leave_no_window():
    stream = vlp16(96)
    kept = np.full(96, fill_value=True)
    kept[::6] = False
    assert len(clock_features(sample(stream.change(keep=kept)))) == 0


def test_features_of_a_patch_are_those_of_its_firings():
    generator = np.random.default_rng(2)
    distance = np.rint(2000 + generator.normal(0.0, 4.0, (1, 12, 1))).astype(np.int64)
    byte = generator.integers(44, 47, (1, 12, 1))
    patches = find_patches(Firings(distance=distance, byte=byte, unit_mm=2))
    found = {name: float(column[0]) for name, column in patch_features(patches, 2).columns.items()}
    code, value = distance[0, :, 0], byte[0, :, 0]
    x = np.arange(12)
    residual = 2.0 * (code - np.polyval(np.polyfit(x, code, 2), x))
    step, same = np.diff(code), np.diff(value) == 0
    assert found["noise.sd"] == pytest.approx(residual.std())
    assert found["noise.third"] == np.median(np.abs(2 * np.diff(code, 3)))
    assert found["colour.lag_2"] == pytest.approx((residual[2:] @ residual[:-2]) / (residual @ residual))
    assert found["byte.equal"] == pytest.approx(same.mean())
    assert found["byte.kinds"] == len(set(value.tolist()))
    assert found["range_byte.level"] == pytest.approx(np.corrcoef(residual, value)[0, 1])
    assert found["parity.odd"] == pytest.approx((step % 2).mean())
    assert found["parity.odd_equal"] == pytest.approx((step[same] % 2).mean())
    assert found["parity.commoner"] == max((code % 2).mean(), 1 - (code % 2).mean())


def test_patches_of_other_ranges_and_bytes_are_in_other_cells():
    def cell(code, byte):
        shape = (1, 12, 1)
        return int(patch_features(find_patches(Firings(distance=np.full(shape, code), byte=np.full(shape, byte), unit_mm=2)), 2).cell[0])

    assert len({cell(1100, 50), cell(2100, 50), cell(1100, 80), cell(2100, 80)}) == 4
    assert cell(1100, 50) == cell(1900, 50)


def test_a_capture_without_a_patch_has_no_signal():
    stream = vlp16(60)
    records(stream)["distance"] = 0
    assert len(signal_features(sample(stream))) == 0


def test_bytes_of_empty_firings_are_at_the_baseline_multiples_or_others():
    stream = vlp16(96)
    records(stream)["distance"] = 0
    records(stream)["reflectivity"] = np.tile(BASELINE, 2)
    records(stream)["reflectivity"][:, 0] = np.tile(3 * BASELINE, 2)
    records(stream)["reflectivity"][:, 1] = np.tile(BASELINE + 1, 2)
    table = empty_features(sample(stream))
    assert len(table) == 24
    np.testing.assert_allclose(table.columns["empty.at_baseline"], 10 / 12)
    np.testing.assert_allclose(table.columns["empty.multiples"], 1 / 12)
    kinds = len(set((3 * BASELINE).tolist()) | set((BASELINE + 1).tolist()))
    np.testing.assert_allclose(table.columns["empty.other_kinds"], kinds / np.sqrt(4 * 12 * 32))


def test_drop_outs_edges_and_scene_are_shares_of_a_window():
    stream = vlp16(96)
    records(stream)["distance"] = 2000
    records(stream)["reflectivity"] = 100
    records(stream)["distance"][:, 3, 5] = 0
    table = drop_out_features(sample(stream))
    np.testing.assert_allclose(table.columns["drop_outs.single"], 1 / (24 * 16 - 1))
    np.testing.assert_allclose(table.columns["drop_outs.isolated"], 0.0)
    scene = scene_features(sample(stream))
    np.testing.assert_allclose(scene.columns["scene.empty"], 1 / (24 * 16))
    np.testing.assert_allclose(scene.columns["scene.byte_100"], 1.0)
    assert len(edge_features(sample(stream))) == 0
    records(stream)["distance"][:, 6:] = 3000
    edges = edge_features(sample(stream))
    assert len(edges) == 12
    np.testing.assert_allclose(edges.columns["edges.with_empty"], 0.0)


def test_tables_join_by_column():
    table = join_tables([table_of_rows([]), table_of_rows([{"a.x": 1.0}, {"a.x": 2.0}]), table_of_rows([{"a.x": 3.0}])])
    assert table.columns["a.x"].tolist() == [1.0, 2.0, 3.0]
    assert table.values("a").shape == (3, 1)
    assert len(join_tables([])) == 0
