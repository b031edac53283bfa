"""A profile says of its model only what the table of models does not know, and must not contradict it."""

import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory, read_profile
from hilsim.errors import ConfigError
from hilsim.families.velodyne.protocol.models import BY_NAME, VLP_16, VLP_32C
from hilsim.families.velodyne.specs import VelodyneSpec

VLP16 = read_toml(profiles_directory() / "sensors" / "vlp16.toml")
TURNING = [path for path in sorted((profiles_directory() / "sensors").glob("*.toml")) if read_profile(path).get("family", "velodyne") == "velodyne"]


def spec_of(table):
    return parse_table(VelodyneSpec, table, "a profile")


@pytest.mark.parametrize("path", TURNING, ids=lambda path: path.stem)
def test_a_shipped_profile_repeats_nothing_that_the_table_knows(path):
    table = read_toml(path)
    assert table["model"] in BY_NAME
    assert VelodyneSpec.of_model & set(table) <= {"channels"}
    assert all(set(channel) == {"no_return_reflectivity"} for channel in table.get("channels", []))


def test_lasers_and_times_of_a_known_model_come_from_the_table():
    spec = spec_of(VLP16)
    assert spec.geometry == VLP_16.geometry
    assert (spec.product, spec.laser_count) == (VLP_16.product, VLP_16.channels)
    assert [channel.no_return_reflectivity for channel in spec.channels[:3]] == [9, 23, 24]


def test_the_model_alone_settles_all_its_facts():
    bare = {key: value for key, value in VLP16.items() if key != "channels"} | {"model": "VLP-32C"}
    spec = spec_of(bare)
    assert (spec.lasers_per_firing, spec.range_unit_mm, spec.channels[1].azimuth_offset_deg) == (2, 4.0, -4.2)
    assert spec.geometry.delay_ns == VLP_32C.geometry.delay_ns


def test_facts_may_be_repeated_where_they_agree():
    facts = {"product": 0x22, "firing_ns": 2304, "sequence_ns": 55296, "range_unit_mm": 2, "lasers_per_firing": 1}
    channels = [channel | {"elevation_deg": elevation} for channel, elevation in zip(VLP16["channels"], VLP_16.geometry.elevation_deg, strict=True)]
    assert spec_of(VLP16 | facts | {"channels": channels}) == spec_of(VLP16)


def test_every_fact_that_contradicts_the_table_is_named_with_all_other_faults():
    channels = [dict(channel) for channel in VLP16["channels"]]
    channels[3]["elevation_deg"] = 3.1
    with pytest.raises(ConfigError) as caught:
        spec_of(VLP16 | {"product": 0x24, "sequence_ns": 60_000, "channels": channels, "range_noise_m": 5.0})
    assert str(caught.value).split("\n") == [
        "a profile: product must be 34 for a VLP-16, by the table of models, got 36",
        "a profile: sequence_ns must be 55296 for a VLP-16, by the table of models, got 60000",
        "a profile: channels[3].elevation_deg must be 3.0 for a VLP-16, by the table of models, got 3.1",
        "a profile: range_noise_m must be 0 to 1, got 5.0",
    ]


def test_another_number_of_channels_than_the_model_has_is_refused():
    with pytest.raises(ConfigError, match="channels must be 16 for a VLP-16, by the table of models, got 15"):
        spec_of(VLP16 | {"channels": VLP16["channels"][:-1]})


def test_a_model_that_the_table_does_not_know_says_all_itself():
    with pytest.raises(ConfigError, match="product must be given") as caught:
        spec_of({key: value for key, value in VLP16.items() if key != "channels"} | {"model": "MINE"})
    assert all(f"a profile: {key} must be given" in str(caught.value) for key in ("channels", "firing_ns", "sequence_ns", "range_unit_mm"))
    channels = [{"elevation_deg": float(laser)} for laser in range(16)]
    facts = {"product": 0x77, "firing_ns": 2000, "sequence_ns": 50_000, "range_unit_mm": 5.0, "channels": channels}
    assert spec_of(VLP16 | facts | {"model": "MINE"}).geometry.delay_ns[-1] == 30_000


def test_channels_that_are_no_list_of_tables_are_refused_in_one_sentence():
    with pytest.raises(ConfigError, match="channels must be"):
        spec_of(VLP16 | {"channels": "sixteen"})
