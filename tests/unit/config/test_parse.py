"""Configuration faults: all at once, by file and key."""

from dataclasses import dataclass, field

import pytest

from hilsim.config.parse import parse_table
from hilsim.config.toml_file import read_toml
from hilsim.errors import ConfigError, require


@dataclass(frozen=True, kw_only=True)
class Inner:
    width_m: float
    pair: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self):
        require(
            (self.width_m > 0, f"width_m must be above 0, got {self.width_m}"),
            (self.pair[0] >= 0, f"pair must begin at 0 or above, got {self.pair[0]}"),
        )


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    count: int = 1
    inner: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = field(default_factory=dict)

    def __post_init__(self):
        require((self.count < 10, f"count must be below 10, got {self.count}"))


def faults(table):
    with pytest.raises(ConfigError, match=r"rig\.toml") as caught:
        parse_table(Outer, table, "rig.toml")
    return sorted(str(caught.value).split("\n"))


def test_a_sound_table_becomes_the_dataclass():
    table = {"name": "a", "inner": [{"width_m": 1}], "by_name": {"x": {"width_m": 2.5, "pair": [1, 2]}}}
    assert parse_table(Outer, table, "rig.toml") == Outer(name="a", inner=(Inner(width_m=1.0),), by_name={"x": Inner(width_m=2.5, pair=(1.0, 2.0))})


def test_every_fault_is_named_at_once_even_rules_behind_other_faults():
    table = {"name": 3, "count": 99, "cuont": 1, "inner": [{"width_m": -1, "pair": [-1, 0]}, {"width_m": "2"}], "by_name": {"x": {}}}
    assert faults(table) == [
        "rig.toml: by_name.x.width_m must be given",
        'rig.toml: cuont: unknown key (did you mean "count"?)',
        "rig.toml: inner[0].pair must begin at 0 or above, got -1.0",
        "rig.toml: inner[0].width_m must be above 0, got -1.0",
        'rig.toml: inner[1].width_m must be number, got "2"',
        "rig.toml: name must be string, got 3",
    ]


def test_a_rule_of_the_outer_table_is_found_behind_faults_of_inner_ones():
    assert faults({"name": "a", "count": 99, "inner": [{"width_m": -1}]}) == [
        "rig.toml: count must be below 10, got 99",
        "rig.toml: inner[0].width_m must be above 0, got -1.0",
    ]


def test_an_unknown_key_far_from_any_other_lists_the_known_ones():
    assert faults({"name": "a", "inner": [{"width_m": 1, "zzz": 0}]}) == ["rig.toml: inner[0].zzz: unknown key (known here: width_m, pair)"]


def test_text_is_never_taken_for_a_number():
    assert faults({"name": "a", "count": "5"}) == ['rig.toml: count must be integer, got "5"']


def test_not_a_number_is_refused_by_the_rule():
    assert faults({"name": "a", "inner": [{"width_m": float("nan")}]}) == ["rig.toml: inner[0].width_m must be above 0, got nan"]


def test_broken_toml_names_file_and_line(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("name = 'a'\ncount =\n")
    with pytest.raises(ConfigError, match=r"broken\.toml: must be TOML: .*line 2"):
        read_toml(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing\.toml: no such file"):
        read_toml(tmp_path / "nothing.toml")
