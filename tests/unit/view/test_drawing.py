"""Colours, picked points, fields of view, meshes, and the text of the health."""

from types import SimpleNamespace

import numpy as np
import pytest

from hilsim.show.view.page.colours import MAPS, QUANTITIES, colours
from hilsim.show.view.page.models import SceneModel, field_of_view, track_segments
from hilsim.show.view.page.parts import joined, placed
from hilsim.show.view.page.picking import describe, distance_m, pick
from hilsim.show.view.page.strips import health_text, later_figures, latest, plain, sample
from tests.unit.view.feeds import points, scan

NO_ORIGIN = np.zeros(3)


def _part(count=1000, **changes):
    return placed(scan(0, count, **changes), 0, NO_ORIGIN)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_quantity_colours_every_point(quantity):
    for part in (_part(), _part(1), _part(instance=None, label=None), joined([])):
        found, _ = colours(part, quantity, MAPS[0])
        assert found.shape == part.world.shape
        assert found.dtype == np.uint8


@pytest.mark.parametrize(
    ("quantity", "values"),
    [
        ("intensity", lambda part: part.points["intensity"]),
        ("distance", lambda part: part.points["range"]),
        ("height", lambda part: part.world[:, 2]),
        ("ring", lambda part: part.points["ring"]),
        ("time in the scan", lambda part: part.points["time"]),
    ],
)
def test_a_measure_follows_the_colour_map(quantity, values):
    part = _part()
    grey, limits = colours(part, quantity, "gray")
    order = np.argsort(values(part), kind="stable")
    assert (np.diff(grey[order, 0].astype(int)) >= 0).all()
    assert grey[:, 0].max() - grey[:, 0].min() > 50
    assert " to " in limits


@pytest.mark.parametrize(("quantity", "classes"), [("object", 7), ("label", 5), ("return", 2), ("sensor", 1)])
def test_a_class_has_one_colour_and_differs_from_the_others(quantity, classes):
    assert len(np.unique(colours(_part(), quantity, MAPS[0])[0], axis=0)) == classes


def test_points_of_unknown_objects_are_grey():
    assert (colours(_part(instance=None), "object", MAPS[0])[0] == 128).all()


def test_the_colour_map_is_the_chosen_one():
    assert len({colours(_part(), "distance", name)[0].tobytes() for name in MAPS}) == len(MAPS)


def test_the_limits_are_round_and_steady():
    limits = {colours(_part(points=points(1000, number)), "distance", MAPS[0])[1] for number in range(8)}
    assert limits == {"0 to 20 m"}


def test_a_ray_picks_the_point_it_meets():
    part = _part()
    eye = np.array([0.0, 0.0, 1.8])
    for index in (0, 123, 999):
        found = pick(part, eye, (part.world[index] - eye) * 7.0)
        assert np.linalg.norm(part.world[found] - part.world[index]) < 0.1


def test_the_nearer_of_two_points_behind_each_other_is_picked():
    made = points(2)
    made["x"], made["y"], made["z"] = [0.0, 0.001], [20.0, 10.0], [0.0, 0.0]
    assert pick(_part(2, points=made, position_m=(0.0, 0.0, 0.0)), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)) == 1


@pytest.mark.parametrize("direction", [(0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (np.nan, 0.0, 1.0), (np.inf, 0.0, 0.0)])
def test_a_ray_that_meets_no_point_picks_none(direction):
    assert pick(_part(), (0.0, 0.0, 1.8), direction) is None
    assert pick(joined([]), (0.0, 0.0, 1.8), (1.0, 0.0, 0.0)) is None


def test_points_behind_the_camera_are_not_picked():
    made = points(1)
    made["x"], made["y"], made["z"] = 0.0, -5.0, 0.0
    assert pick(_part(1, points=made, position_m=(0.0, 0.0, 0.0)), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)) is None


def test_a_picked_point_is_described_with_everything_known_of_it():
    part = _part()
    rows = dict(describe(part, 500, ["roof"], NO_ORIGIN).rows)
    assert rows["sensor"] == "roof"
    assert rows["channel (ring)"] == str(500 % 16)
    assert rows["azimuth"] == "180.00°"
    assert rows["range"] == f"{part.points['range'][500]:.3f} m"
    assert rows["intensity"] == "50"
    assert rows["time in the scan"] == "50.000 ms"
    assert rows["object"] == str(500 % 7 - 1)
    assert dict(describe(_part(instance=None), 0, ["roof"], NO_ORIGIN).rows)["object"] == "unknown"


def test_the_distance_of_two_picked_points_is_measured():
    part = _part()
    first, second = (describe(part, index, ["roof"], NO_ORIGIN) for index in (0, 500))
    assert distance_m(first, second) == pytest.approx(float(np.linalg.norm(part.world[0] - part.world[500])), abs=1e-4)


def test_a_turning_sensor_sees_all_around_between_its_lowest_and_highest_channel():
    edges = field_of_view(points(5000), 4.0)
    ends = edges.reshape(-1, 3)
    away = np.linalg.norm(ends, axis=1)
    outer = ends[away > 1.0]
    np.testing.assert_allclose(away[away > 1.0], 4.0, rtol=1e-5)
    elevation = np.degrees(np.arcsin(outer[:, 2] / 4.0))
    assert elevation.min() == pytest.approx(-15.0, abs=0.1)
    assert elevation.max() == pytest.approx(15.0, abs=0.1)


def test_a_sensor_that_looks_forward_has_sides():
    made = points(5000)
    ahead = made[(made["azimuth"] < 30) | (made["azimuth"] > 330)]
    ends = field_of_view(ahead, 4.0).reshape(-1, 3)
    azimuth = np.degrees(np.arctan2(ends[:, 0], ends[:, 1]))
    assert azimuth.min() == pytest.approx(-30.0, abs=0.5)
    assert azimuth.max() == pytest.approx(30.0, abs=0.5)


def test_no_points_have_no_field_of_view():
    assert field_of_view(points(0), 4.0).shape == (0, 2, 3)


def test_a_track_has_a_segment_between_neighbours():
    assert track_segments(np.zeros((5, 3), np.float32)).shape == (4, 2, 3)


@pytest.mark.parametrize(
    ("vertices", "triangles"),
    [(np.zeros((3, 2)), np.zeros((1, 3), int)), (np.zeros((3, 3)), np.zeros((1, 4), int)), (np.zeros((3, 3)), np.array([[0, 1, 3]]))],
)
def test_a_mesh_of_another_shape_is_refused(vertices, triangles):
    with pytest.raises(ValueError, match="of wall"):
        SceneModel(name="wall", vertices=vertices, triangles=triangles)


def test_a_sample_takes_the_worst_of_all_flows_and_what_is_known():
    flows = {"data": {"late_packets": 3, "dropped_packets": 1, "lateness_max_s": 0.002}, "position": {"lateness_max_s": 0.004}}
    status = {"sensors": {"a": {"lead_s": 0.01, "skipped_packets": 2, "flows": flows}, "b": {"lead_s": 0.02, "flows": {}}}}
    found = sample(status, {"a/data lateness_p99_s": 0.001, "a/position lateness_p99_s": 0.0005, "a render_p50_s": 0.003, "vehicle height_m": 7.0})
    assert found.lateness_ms == {"p99": 1.0, "max": 4.0}
    assert found.counters == {"missed": 3.0, "lost": 1.0, "skipped": 2.0}
    assert found.render_ms == {"p50": 3.0, "lead": 20.0}


def test_the_latest_figures_of_a_feed_are_those_that_are_numbers():
    series = SimpleNamespace(
        names=lambda: ("a lateness_p50_s", "b", "c"),
        values=lambda name: (np.zeros(2), np.array({"a lateness_p50_s": [1.0, 2.0], "b": [1.0, np.nan], "c": []}[name])),
    )
    assert latest(SimpleNamespace(series=series)) == {"a lateness_p50_s": 2.0}
    assert latest(object()) == {}


@pytest.mark.parametrize(
    "status", [{}, {"sensors": None}, {"sensors": {"a": 1}}, {"sensors": {"a": {"flows": {"b": {"lateness_max_s": float("nan")}}}}}]
)
def test_a_state_that_lacks_everything_is_no_error(status):
    assert sample(status, {}).lateness_ms == {}
    assert "**" in health_text(status)


def test_faults_are_listed_without_markup():
    text = health_text({"level": "degraded", "faults": [{"text": "sensor <script>x</script> is *late*"}]})
    assert text == f"**degraded**\n- sensor {plain('<script>')}x{plain('</script>')} is {plain('*')}late{plain('*')}"
    assert "<" not in text


def test_strips_of_poses_a_vehicle_and_clocks_have_what_is_known_of_them():
    assert later_figures({"roof/data lateness_p50_s": 1e-5}) == {}
    figures = {
        "roof/data pose_to_wire_p50_s": 0.003,
        "front/data pose_to_wire_p50_s": 0.004,
        "vehicle height_m": 12.0,
        "vehicle roll_deg": 1.0,
        "vehicle yaw_deg": -3.0,
        "vehicle motor_1_radps": 400.0,
        "vehicle motor_2_radps": 410.0,
        "clock utc_offset_s": -0.002,
        "roof device_clock_offset_s": 0.001,
        "front device_clock_offset_s": -0.005,
    }
    assert later_figures(figures) == {
        "pose to wire in ms": {"p50": 4.0},
        "height in m": {"height": 12.0},
        "attitude in deg": {"roll": 1.0, "yaw": -3.0},
        "motors in rad/s": {"motor 1": 400.0, "motor 2": 410.0},
        "clocks: offset from UTC in ms": {"host": -2.0, "sensors": -5.0},
    }
