"""Ground truth beside what an independent decoder makes of the same recording, point by point."""

import numpy as np
import pytest
from velodyne_decoder import Config, Model, ReturnMode, read_pcap

from hilsim.config.rig import load_rig
from hilsim.offline.record import record
from tests.support import ROOM, write_rig

pq = pytest.importorskip("pyarrow.parquet", reason="the extra truth is not installed")

OPENNESS = """
[[scene.box]]
position_m = [5.0, -3.0, 0.0]
size_m = [0.02, 4.0, 3.0]
material = "paling"
[[scene.box]]
position_m = [-4.0, 2.0, 0.0]
size_m = [0.02, 3.0, 3.0]
material = "glass"
[[scene.box]]
position_m = [1.0, 4.0, 0.0]
size_m = [3.0, 0.02, 3.0]
material = "chain_link"
"""
COLUMNS = ["channel", "sequence", "block", "return_type", "distance", "reflectivity", "range_m", "echo"]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Truth's columns, decoded points and the vertical offset of each channel, by return mode."""

    def make(mode):
        directory = tmp_path_factory.mktemp(mode)
        text = (
            ROOM.replace("sub_rays = 1\n", "")
            .replace('name = "lidar"', f'name = "lidar"\nsub_rays = 7\noverride = {{ signal = {{}} }}\nreturn_mode = "{mode}"')
            .replace("[[sensor]]", f"{OPENNESS}\n[[sensor]]")
        )
        rig = load_rig(write_rig(directory, text))
        files = directory / "a.pcap", directory / "a.parquet"
        arguments = {"duration_ns": 400_000_000, "utc_epoch_ns": 1_767_225_600_000_000_000, "batch_ms": 100, "threads": 1, "progress": lambda _: None}
        record(rig, files[0], truth=files[1], **arguments)
        table = pq.read_table(files[1], columns=COLUMNS)
        truth = {name: np.asarray(table[name].to_pylist() if name == "return_type" else table[name].to_numpy()) for name in COLUMNS}
        config = Config(model=Model.VLP16, min_range=0.0, max_range=200.0)
        points = np.concatenate([points for _, points in read_pcap(str(files[0]), config, as_pcl_structs=True)])
        return truth, points, rig.lidars[0].spec.channels

    return {mode: make(mode) for mode in ("strongest", "last", "dual")}


def decoded_range_m(points, channels):
    """Range of each point, and its channel: the decoder adds a laser's vertical offset to z, as the manual says."""
    channel = np.argsort([one.elevation_deg for one in channels])[points["ring"]]
    offset_m = np.array([one.vertical_offset_mm / 1000 for one in channels])[channel]
    return np.linalg.norm([points["x"], points["y"], points["z"] - offset_m], axis=0), channel


@pytest.mark.parametrize("mode", ["strongest", "last"])
def test_of_single_returns_the_nth_point_is_the_nth_row(recordings, mode):
    truth, points, channels = recordings[mode]
    range_m, channel = decoded_range_m(points, channels)
    assert points.size == truth["distance"].size > 100_000
    np.testing.assert_array_equal(channel, truth["channel"])
    np.testing.assert_array_equal(points["intensity"], truth["reflectivity"])
    np.testing.assert_allclose(range_m, truth["distance"] * 0.002, atol=1e-4)
    assert set(truth["return_type"]) == {mode}


def test_the_decoders_split_of_dual_returns_is_the_ground_truths_point_by_point(recordings):
    truth, points, channels = recordings["dual"]
    range_m, channel = decoded_range_m(points, channels)
    firing = truth["sequence"] * 16 + truth["channel"]
    even, odd = truth["block"] % 2 == 0, truth["block"] % 2 == 1
    pairs = {part: np.argsort(firing[rows], kind="stable") for part, rows in (("even", even), ("odd", odd))}
    first, second = ({name: column[rows][pairs[part]] for name, column in truth.items()} for part, rows in (("even", even), ("odd", odd)))
    np.testing.assert_array_equal(first["sequence"], second["sequence"])
    np.testing.assert_array_equal(first["channel"], second["channel"])
    is_one_echo = first["echo"] == second["echo"]
    assert is_one_echo.sum() > 10_000
    assert (~is_one_echo).sum() > 5000
    # A pair that is one echo is one point to the decoder; of another pair it calls the even block's point last and the odd block's strongest.
    expected = {ReturnMode.BOTH: (first, is_one_echo), ReturnMode.LAST: (first, ~is_one_echo), ReturnMode.STRONGEST: (second, ~is_one_echo)}
    for kind, (rows, chosen) in expected.items():
        of_kind = points["return_type"] == kind.value
        np.testing.assert_array_equal(channel[of_kind], rows["channel"][chosen], err_msg=kind.name)
        np.testing.assert_array_equal(points["intensity"][of_kind], rows["reflectivity"][chosen], err_msg=kind.name)
        np.testing.assert_allclose(range_m[of_kind], rows["distance"][chosen] * 0.002, atol=1e-4, err_msg=kind.name)
        # 5 sd of the noise of the weakest echoes that there are in a room.
        assert np.abs(range_m[of_kind] - rows["range_m"][chosen]).max() < 0.1


def test_which_of_a_pair_is_last_and_which_is_strongest_is_so_by_the_exact_ranges_and_echoes(recordings):
    truth, _, _ = recordings["dual"]
    key = truth["sequence"] * 16 + truth["channel"]
    for kind, partner in (("last", "strongest"), ("second_strongest", "both")):
        of_kind = truth["return_type"] == kind
        assert of_kind.sum() > 1000
        is_partner = (truth["return_type"] == partner) & np.isin(key, key[of_kind])
        if kind == "second_strongest":  # its partner is the last, in the even block, and stronger
            np.testing.assert_array_equal(truth["block"][of_kind] % 2, 1)
            np.testing.assert_array_equal(truth["block"][is_partner] % 2, 0)
        else:
            np.testing.assert_array_equal(truth["block"][of_kind] % 2, 0)
        farther, nearer = (of_kind, is_partner) if kind == "last" else (is_partner, of_kind)
        order = [np.argsort(key[rows], kind="stable") for rows in (farther, nearer)]
        far, near = ({name: truth[name][rows][by_key] for name in ("range_m", "echo")} for rows, by_key in zip((farther, nearer), order, strict=True))
        np.testing.assert_array_equal(np.sort(key[farther]), np.sort(key[nearer]))
        assert (far["echo"] > near["echo"]).all()
        assert (far["range_m"] - near["range_m"] > 1.15).all()
