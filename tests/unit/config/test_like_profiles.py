"""Profiles that are like another one."""

import pytest

from hilsim.config.profiles import profiles_directory, read_profile
from hilsim.config.sensor_profiles import parse_profile
from hilsim.errors import ConfigError


def test_a_profile_has_the_keys_that_it_gives_and_the_others_of_the_one_that_it_is_like(tmp_path):
    (tmp_path / "near.toml").write_text('like = "os1-64"\nrange_max_m = 50.0\n')
    (tmp_path / "nearer.toml").write_text('like = "near.toml"\nmodel = "mine"\n')
    spec = parse_profile(read_profile(tmp_path / "nearer.toml"), "nearer")
    assert (spec.model, spec.beams, spec.range_max_m, spec.prod_line) == ("mine", 64, 50.0, "OS-1-64")
    whole = parse_profile(read_profile(profiles_directory() / "sensors" / "os1-128.toml"), "os1-128")
    assert spec.elevation_deg == whole.elevation_deg[::2]
    assert spec.azimuth_deg == whole.azimuth_deg[::2]


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ('"wlp16"', r'wrong\.toml: like: profile must be a path ending in \.toml or one of the shipped ones .* got "wlp16"; did you mean "vlp16"'),
        ('"gone.toml"', r"wrong\.toml: like: .*gone\.toml: no such profile"),
        ('"wrong.toml"', r"wrong\.toml: like must lead to a profile without like, got 8 that are like another one"),
        ("5", r"wrong\.toml: like must be the name of a profile or a path ending in \.toml, got 5"),
    ],
)
def test_a_profile_that_is_like_none_is_an_error_that_names_the_file(tmp_path, like, message):
    (tmp_path / "wrong.toml").write_text(f"like = {like}\n")
    with pytest.raises(ConfigError, match=message):
        read_profile(tmp_path / "wrong.toml")
