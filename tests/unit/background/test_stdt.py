"""Cepton's older packets, which only the vendor's library decodes: its points as STDV points, and the child process that makes a capture of them."""

import dataclasses
from ipaddress import IPv4Address

import numpy as np
import pytest

from hilsim.capture.batches import CaptureBatches, sender_number
from hilsim.capture.pcap import CaptureFile, PcapWriter
from hilsim.config.parse import read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.config.sensor_profiles import parse_profile
from hilsim.errors import CaptureError
from hilsim.families.cepton.background import StdtSource, StdvSource, stdt_library
from hilsim.families.cepton.background.stdt_library import IMAGE_POINT_DTYPE, IS_SATURATED, IS_VALID, stdv_packets, stdv_points
from hilsim.families.cepton.protocol.stdv import POINT_DTYPE, PointFlag, decode_stdv_points, point_times_us, read_stdv_header
from hilsim.read.background.generator import generate, prepare
from hilsim.read.background.job import MapJob, Stretch, map_capture
from hilsim.read.background.part import FoundSensor, GridSetting
from hilsim.read.background.pool import map_here
from hilsim.read.background.surface import SurfaceRule
from hilsim.read.background.survey import survey
from hilsim.world.scene.background import ImageGrid
from tests.unit.background.recordings import write_capture
from tests.unit.capture.frames_by_hand import udp_frame

CAPTURE = "cepton_hr80_two_sensors.pcap"
NARROW, WIDE = "192.168.32.87", "192.168.48.101"
SENSOR = FoundSensor(address=NARROW, sender=sender_number(NARROW, 8808), source=StdtSource(), packets=1)


def readable(path, sensor, advance=lambda _: None):
    return sensor.source.readable(path, sensor, advance)


BEGIN_US = 1_516_320_000_000_000

needs_library = pytest.mark.skipif(stdt_library.library_path() is None, reason="the vendor's library (wheel cepton-sdk2) is not installed")


def image_points(distance, *, image_x=0.0, image_z=0.0, intensity=0.5, flags=IS_VALID, stamp_us=None):
    distance = np.atleast_1d(np.asarray(distance, float))
    points = np.zeros(distance.size, IMAGE_POINT_DTYPE)
    for name, values in (("distance", distance), ("image_x", image_x), ("image_z", image_z), ("intensity", intensity), ("flags", flags)):
        points[name] = values
    points["segment"] = np.arange(distance.size) % 8
    points["stamp_us"] = BEGIN_US + (8 * np.arange(distance.size) if stamp_us is None else np.asarray(stamp_us))
    return points


def test_a_point_of_the_librarys_image_lies_upside_down_and_left_to_right():
    ratio = np.array([0.3, 0.4])
    [point] = stdv_points(image_points(10.0 * np.sqrt(1.0 + ratio @ ratio), image_x=-0.3, image_z=0.4))
    assert [point[name].item() for name in ("x", "y", "z")] == [600, 2000, -800]
    assert (point["reflectivity"], point["channel"], point["flags"]) == (50, 0, 0)


@pytest.mark.parametrize(
    ("distance", "image_x", "flags"),
    [(10.0, 0.0, 0), (0.0, 0.0, IS_VALID), (0.002, 0.0, IS_VALID), (327.7, 0.0, IS_VALID), (260.0, -1.0, IS_VALID), (260.0, 1.0, IS_VALID)],
)
def test_a_point_without_a_return_or_beyond_16_bits_is_a_no_return(distance, image_x, flags):
    [point] = stdv_points(image_points(distance, image_x=image_x, flags=flags))
    assert [point[name].item() for name in ("x", "y", "z", "reflectivity", "flags")] == [0, 0, 0, 0, PointFlag.NO_RETURN]


def test_the_farthest_point_that_16_bits_hold_is_reported():
    [point] = stdv_points(image_points(327.675, flags=IS_VALID | IS_SATURATED, intensity=60.0))
    assert (point["y"], point["reflectivity"], point["flags"]) == (65_535, 255, PointFlag.SATURATED)


def test_packets_say_the_time_of_each_point_and_are_stamped_with_their_last():
    stamp_us = np.concatenate([8 * np.arange(200), 1592 + 255 + 8 * np.arange(50), 3000 + 8 * np.arange(3), 2990 + 8 * np.arange(3)])
    packets = stdv_packets(image_points(np.full(stamp_us.size, 10.0), stamp_us=stamp_us))
    times = []
    for stamp, payload in packets:
        points = decode_stdv_points(payload)
        times.append(point_times_us(points, read_stdv_header(payload).stamp_us) - BEGIN_US)
        assert stamp == times[-1][-1] + BEGIN_US
    assert [len(some) for some in times] == [144, 106, 3, 3]  # a gap of 255 us is a step, of more a new packet, and so is a step back
    np.testing.assert_array_equal(np.concatenate(times), stamp_us)


def test_a_capture_of_packets_that_are_decoded_here_is_read_itself(tmp_path):
    with readable(tmp_path / "a.pcap", dataclasses.replace(SENSOR, source=StdvSource())) as source:
        assert source == (tmp_path / "a.pcap", ())


def test_without_the_vendors_library_it_is_reported_what_to_install(tmp_path, monkeypatch):
    path = write_capture(tmp_path / "old.pcap", [b"STDT" + bytes(1042)] * 3, address=NARROW)
    monkeypatch.setattr(stdt_library.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        CaptureError, match=r"old.pcap: STDT packets .* which is not installed, got 192.168.32.87 \(Cepton STDT\): pip install cepton-sdk2"
    ):
        prepare(path, GridSetting())


def test_a_child_that_dies_is_reported_by_its_last_word(tmp_path, monkeypatch):
    monkeypatch.setattr(stdt_library, "library_path", lambda: tmp_path)
    monkeypatch.setattr(stdt_library, "__name__", "hilsim.no_such_module")
    with pytest.raises(CaptureError, match=r"old.pcap: the vendor's library must decode it, got: .*No module named hilsim.no_such_module"):  # noqa: SIM117
        with readable(tmp_path / "old.pcap", SENSOR):
            pass


def test_the_bar_moves_by_what_the_child_says_and_not_by_what_the_library_does(tmp_path, monkeypatch):
    says = f"print('noise'); print('{stdt_library.PROGRESS} 400'); print('{stdt_library.PROGRESS} soon'); print('{stdt_library.PROGRESS} 1000')"
    (tmp_path / "speaker.py").write_text(f"import sys, pathlib\n{says}\npathlib.Path(sys.argv[2]).with_suffix('.notes').write_text('cut off\\n')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(stdt_library, "library_path", lambda: tmp_path)
    monkeypatch.setattr(stdt_library, "__name__", "speaker")
    steps = []
    with readable(tmp_path / "old.pcap", SENSOR, steps.append) as source:
        assert source.notes == ("cut off",)
    assert steps == [400, 600]


def two_old_sensors(path, late):
    """A sensor's packets, and from the ``late``-th on another one's between them."""
    with PcapWriter(path) as writer:
        for number in range(2 * late):
            for address in (NARROW, WIDE)[: 1 + (number >= late)]:
                frame = udp_frame(b"STDT" + bytes(1042))
                writer.write(BEGIN_US * 1000 + number * 1_000_000, frame[:26] + IPv4Address(address).packed + frame[30:])
    return path


def test_an_old_sensor_that_appears_late_is_refused_unless_one_is_chosen(tmp_path, monkeypatch):
    path = two_old_sensors(tmp_path / "old.pcap", late=300)
    [first] = survey(CaptureBatches(path))  # which does not read so far
    grid = ImageGrid(columns=8, rows=8, x_min=-1.0, x_max=1.0, z_min=-1.0, z_max=1.0)
    job = MapJob(grid=grid, source=first.source)
    monkeypatch.setattr(stdt_library, "library_path", lambda: None)
    with pytest.raises(CaptureError, match=rf"old.pcap: one sensor must be chosen with --sensor ADDRESS, got {NARROW} \(Cepton STDT\) and {WIDE}$"):
        map_capture(job, path)
    goes_on = r"STDT packets must be decoded by the vendor's library"
    for other in (dataclasses.replace(job, sensor=NARROW), dataclasses.replace(job, stretch=Stretch(duration_s=0.2))):
        with pytest.raises(CaptureError, match=goes_on):
            map_capture(other, path)


@needs_library
def test_a_capture_without_information_packets_is_refused(tmp_path):
    path = write_capture(tmp_path / "old.pcap", [b"STDT" + bytes(1042)] * 3, address=NARROW)
    with pytest.raises(CaptureError, match=r"^/[^:]*old.pcap: must hold an information packet \(INFO, once a second\) of 192.168.32.87"):
        prepare(path, GridSetting())


@needs_library
def test_the_real_capture_becomes_stdv_packets_with_its_own_times(capture):
    path = capture(CAPTURE)
    with readable(path, SENSOR) as source:
        datagrams = list(CaptureFile(source.path).datagrams())
    assert {(datagram.source, datagram.destination_port) for datagram in datagrams} == {(NARROW, 8808)}
    points = np.concatenate([decode_stdv_points(datagram.payload) for datagram in datagrams])
    assert points.dtype == POINT_DTYPE
    assert points.size == 192_896  # 1507 packets of 128
    assert int((points["flags"] & PointFlag.NO_RETURN == 0).sum()) == 160_126
    assert len({datagram.payload[8:16] for datagram in datagrams}) == 1507
    recorded = [datagram.host_stamp_ns for datagram in CaptureFile(path).datagrams() if datagram.source == NARROW and datagram.payload[:4] == b"STDT"]
    behind_us = (np.array([datagram.host_stamp_ns for datagram in datagrams]) - np.array(recorded[: len(datagrams)])) / 1000
    np.testing.assert_allclose(behind_us, 128 * 8, atol=1.0)


@pytest.mark.extended
@needs_library
@pytest.mark.parametrize(("sensor", "profile", "used"), [(NARROW, "hr80t-like", 0.75), (WIDE, "hr80w-like", 0.5)])
def test_the_two_sensors_of_the_real_capture_have_maps(capture, sensor, profile, used):
    path = capture(CAPTURE)
    named = parse_profile(read_toml(profiles_directory() / "sensors" / f"{profile}.toml"), profile)
    job, found = prepare(path, GridSetting(columns=120, rows=40), sensor=sensor, named=named)
    made = generate(job, found, [path], SurfaceRule(), map_here, lambda _: None)
    assert (made.map.model, made.map.provenance["captures"][0]["name"]) == (named.model, CAPTURE)
    assert made.map.used.mean() > used
    assert made.change.ratio < 0.02
    lowest, highest = (made.map.distance_mm[rows][made.map.used[rows]] for rows in (slice(10), slice(-10, None)))
    assert np.median(lowest) < 15_000 < np.median(highest)  # the ground below, houses above
    assert map_capture(job, path).partial.captures == made.partial.captures


def test_one_of_two_old_sensors_must_be_chosen(capture):
    path = capture(CAPTURE)
    with pytest.raises(CaptureError, match=rf"one sensor must be chosen with --sensor ADDRESS, got .*{NARROW} \(Cepton STDT\)"):
        prepare(path, GridSetting())
    assert {found.address for found in survey(CaptureBatches(path))} == {NARROW, WIDE}
