"""The unit of a rig's sensor: drawn, ideal, or a file beside the rig."""

import pytest

from hilsim.config.rig import load_rig
from hilsim.errors import ConfigError
from tests.support import ROOM, write_rig

OWN = """
model = "VLP-16"
mac = "60:76:88:10:2f:6f"
stamp_ppm = 137.0
byte_noise = [[5.0, 0.8], [60.0, 3.1]]
encoder = [{ rate_rpm = 600, tick_cdeg = 0.0, noise_cdeg = 0.3, curve = [[0.5, 20.0]] }]
laser = [
    { range_bias_m = 0.012, baseline = 9, empty_bytes = [[18, 0.02]], range_codes = [0, 1] },
"""


def with_unit(directory, unit, contents=OWN + "    {},\n" * 15 + "]\n"):
    (directory / "own.toml").write_text(contents)
    return write_rig(directory, ROOM.replace('unit = "ideal"', f'unit = "{unit}"'))


def test_a_sensor_is_drawn_unless_the_rig_says_otherwise(tmp_path):
    rig = load_rig(write_rig(tmp_path, ROOM.replace('unit = "ideal"\n', "")))
    assert rig.lidars[0].setup.unit == "drawn"


def test_a_units_file_is_found_beside_the_rig(tmp_path):
    unit = load_rig(with_unit(tmp_path, "own.toml")).lidars[0].unit
    assert (unit.mac, unit.stamp_ppm, unit.laser[0].range_bias_m, unit.laser[0].baseline) == ("60:76:88:10:2f:6f", 137.0, 0.012, 9)
    assert unit.laser[1].baseline is None
    assert unit.encoder[0].curve == ((0.5, 20.0),)


def test_all_faults_of_a_units_file_are_reported_together(tmp_path):
    path = with_unit(
        tmp_path,
        "own.toml",
        'stamp_ppm = 5000.0\nmac = "x"\nlaser = [{ baseline = 300, gain = 1.0, straddled_bytes = [9, 9], byte_edges = [[9, 9.5], [11, 4.0]], byte_noise = [[9, 1.0], [4, 1.0]] }]\nrange_noise_ratio = 20.0\nripple_m = 0.5\n',
    )
    with pytest.raises(ConfigError, match=r"own\.toml: laser\[0\]\.gain: unknown key") as caught:
        load_rig(path)
    of_bytes = (
        "straddled_bytes must be rising bytes of 0 to 255, got [9, 9]",
        "byte_edges must be pairs of a rising byte of 0 to 255 and an edge of 0 to 256 that does not fall",
        "byte_noise must be pairs of a rising byte of 0 to 255 and a standard deviation of 0 to 100",
        "range_noise_ratio must be 0 to 10, got 20.0",
        "ripple_m must be 0 to 0.1, got 0.5",
    )
    for fault in (*of_bytes, "baseline must be 0 to 255, got 300", "stamp_ppm must be -1000 to 1000, got 5000.0", "mac must be like"):
        assert fault in str(caught.value)


def test_a_unit_that_is_no_file_or_of_another_model_is_a_fault(tmp_path):
    with pytest.raises(ConfigError, match=r"sensor\[0\]\.unit: .*other\.toml: no such file"):
        load_rig(with_unit(tmp_path, "other.toml"))
    with pytest.raises(ConfigError, match=r'sensor\[0\]\.unit must be "drawn", "ideal" or a path ending in \.toml, got "perfect"'):
        load_rig(with_unit(tmp_path, "perfect"))
    with pytest.raises(ConfigError, match=r'sensor\[0\]\.unit\.model must be "VLP-16", the model of the sensor, got "HDL-32E"'):
        load_rig(with_unit(tmp_path, "own.toml", 'model = "HDL-32E"\n'))
