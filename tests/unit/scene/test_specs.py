"""The rules of a rig's ``[scene]`` table."""

import json
import tomllib

import pytest
from pydantic import TypeAdapter, ValidationError

from hilsim.world.scene.object_specs import MeshSpec, MotionSpec, TerrainSpec, WaypointSpec
from hilsim.world.scene.shape_specs import BoxSpec, CylinderSpec, PlaneSpec, SphereSpec
from hilsim.world.scene.specs import BUILT_IN_MATERIALS, MaterialSpec, SceneSpec

NAN = float("nan")

TABLE = """
generator = "street"
generator_seed = 7
origin_m = [691000.0, 5334000, 520.0]

[materials]
hoarding = { reflectivity = 180 }

[[mesh]]
file = "hall.glb"
position_m = [10.0, 0, 0]
rotation_deg = [0, 0, 90]
scale = 0.001
material = "concrete"
materials = { "Paint.001" = "hoarding" }
label = 3
name = "hall"

[[terrain]]
file = "dem.tif"
georeferenced = true

[[plane]]
size_m = [10, 10]

[[box]]
size_m = [1, 2, 3]
material = "hoarding"
motion = { loop = true, interpolation = "smooth", waypoints = [
  { time_s = 0, position_m = [0, 0, 0] },
  { time_s = 2.5, position_m = [5, 0, 0], rotation_deg = [0, 0, 180] },
  { time_s = 5, position_m = [0, 0, 0], rotation_deg = [0, 0, 360] },
] }

[[cylinder]]
radius_m = 0.5
height_m = 2

[[sphere]]
radius_m = 1
tolerance_m = 0.01
"""


def parsed(text):
    return TypeAdapter(SceneSpec).validate_json(json.dumps(tomllib.loads(text)), strict=True, extra="forbid")


def test_a_whole_table_is_read_from_toml_in_strict_mode():
    spec = parsed(TABLE)
    assert spec.origin_m == (691000.0, 5334000.0, 520.0)
    assert spec.mesh[0].materials == {"Paint.001": "hoarding"}
    assert spec.box[0].motion is not None
    assert spec.box[0].motion.waypoints[1] == WaypointSpec(time_s=2.5, position_m=(5.0, 0.0, 0.0), rotation_deg=(0.0, 0.0, 180.0))
    assert [place for place, _ in spec.objects()] == ["mesh[0]", "terrain[0]", "plane[0]", "box[0]", "cylinder[0]", "sphere[0]"]


def test_an_unknown_key_deep_in_the_table_is_refused_with_its_place():
    with pytest.raises(ValidationError, match=r"box\.0\.motion\.waypoints\.0\.speed_mps"):
        parsed(
            "[[box]]\nsize_m = [1, 1, 1]\nmotion = { waypoints = [{ time_s = 0, position_m = [0, 0, 0], speed_mps = 1 }, { time_s = 1, position_m = [0, 0, 0] }] }"
        )


def test_a_material_of_the_rig_goes_before_a_built_in_one():
    spec = SceneSpec(generator="street", materials={"concrete": MaterialSpec(reflectivity=44)})
    assert spec.material_table()["concrete"].reflectivity == 44
    assert BUILT_IN_MATERIALS["concrete"].reflectivity == 35


def test_an_unknown_material_is_refused_with_its_object():
    with pytest.raises(ValueError, match=r"box\[1\]: material must be built in or in materials, got 'cheese'"):
        SceneSpec(box=(BoxSpec(size_m=(1.0, 1.0, 1.0)), BoxSpec(size_m=(1.0, 1.0, 1.0), material="cheese")))


def test_an_unknown_material_in_a_meshs_table_is_refused():
    with pytest.raises(ValueError, match=r"mesh\[0\]: material must be .* got 'cheese'"):
        SceneSpec(mesh=(MeshSpec(file="a.obj", materials={"Paint": "cheese"}),))


def two(a, b, **rest):
    waypoints = (
        WaypointSpec(time_s=a, position_m=(0.0, 0.0, 0.0)),
        WaypointSpec(time_s=b, position_m=(1.0, 0.0, 0.0), rotation_deg=(0.0, 0.0, 90.0)),
    )
    return MotionSpec(waypoints=waypoints, **rest)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaterialSpec(reflectivity=256), "reflectivity must be 0 to 255, got 256"),
        (lambda: MaterialSpec(reflectivity=-1), "reflectivity must be 0 to 255, got -1"),
        (lambda: WaypointSpec(time_s=NAN, position_m=(0.0, 0.0, 0.0)), "time_s must be 0 to 1e\\+08, got nan"),
        (lambda: WaypointSpec(time_s=0.0, position_m=(0.0, NAN, 0.0)), "position_m must be finite"),
        (lambda: MotionSpec(waypoints=()), "waypoints must be at least 2, got 0"),
        (lambda: two(1.0, 1.0), "waypoint 1 must be later than the one before at 1.0 s, got 1.0 s"),
        (lambda: two(0.0, 1.0, loop=True), "loop's last waypoint must be at the first one's position_m, got 1 m away; .* got 90 degrees off"),
        (lambda: BoxSpec(size_m=(1.0, NAN, 1.0)), r"size_m must be at least 1e-06 m and at most 1e\+08, got \(1.0, nan, 1.0\)"),
        (lambda: BoxSpec(size_m=(1.0, 1.0, 1.0), label=256), "label must be 0 to 255, got 256"),
        (lambda: BoxSpec(size_m=(1.0, 1.0, 1.0), material=""), "material must not be empty"),
        (lambda: PlaneSpec(size_m=(0.0, 1.0)), "size_m must be at least 1e-06 m"),
        (lambda: CylinderSpec(radius_m=0.0, height_m=-1.0), "radius_m must be at least 1e-06 m .* height_m must be at least 1e-06 m"),
        (lambda: SphereSpec(radius_m=1000.0), "tolerance_m must be at least radius_m / 100000"),
        (lambda: SphereSpec(radius_m=1.0, tolerance_m=0.0), "tolerance_m must be above 0"),
        (lambda: MeshSpec(file=" "), "file must not be empty"),
        (lambda: MeshSpec(file="a.obj", scale=float("inf")), "scale must be above 0"),
        (lambda: MeshSpec(file="a.obj", rotation_deg=(0.0, NAN, 0.0)), "rotation_deg must be finite"),
        (lambda: TerrainSpec(file="a.png", size_m=(1.0, 1.0), pixel_m=1.0), "terrain must have size_m or pixel_m, got both"),
        (lambda: TerrainSpec(file="a.png", height_min_m=0.0), "height_min_m and height_max_m must be given together"),
        (lambda: TerrainSpec(file="a.png", height_min_m=2.0, height_max_m=1.0), "height_max_m must be above height_min_m, got 1.0 and 2.0"),
        (lambda: TerrainSpec(file="a.png", height_min_m=0.0, height_max_m=1.0, scale_m=1.0), "or scale_m and offset_m, got both"),
        (lambda: TerrainSpec(file="a.png", offset_m=1.0), "offset_m must come with scale_m"),
        (lambda: TerrainSpec(file="a.png", motion=two(0.0, 1.0)), "terrain must not have a motion"),
        (
            lambda: SceneSpec(generator="street", generator_seed=-1, origin_m=(NAN, 0.0, 0.0)),
            "generator_seed must be 0 to 2.63 - 1, got -1; origin_m must be",
        ),
        (
            lambda: SceneSpec(generator="street", generator_moving_cars=41, generator_pedestrians=-1),
            "moving_cars must be 0 to 40.*pedestrians must be 0 to 40",
        ),
        (lambda: SceneSpec(generator="street", materials={"": MaterialSpec(reflectivity=1)}), "a material must have a name"),
    ],
)
def test_a_fault_is_named_with_its_rule_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()
