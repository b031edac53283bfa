"""A scan out of point packets: from one change of the frame parity to the next, and faults reported clearly."""

import numpy as np
import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.errors import CaptureError, PacketError
from hilsim.families.cepton.picture import ImageScan, first_image_scan
from hilsim.families.cepton.protocol.stdv import POINT_DTYPE, PointFlag, encode_stdv_packet
from hilsim.read.analysis.picture.gathering import Gathered

PARITY, NO_RETURN = PointFlag.FRAME_PARITY, PointFlag.NO_RETURN


def packet(*flags, x=200, y=400, z=-100, reflectivity=50):
    rows = [(x, y, z, reflectivity, 8, 0, flag) for flag in flags]
    return encode_stdv_packet(np.array(rows, dtype=POINT_DTYPE), stamp_us=0)


def test_the_first_whole_scan_is_between_two_changes_wherever_packets_end():
    payloads = [packet(0, 0, PARITY), packet(PARITY, PARITY | NO_RETURN, reflectivity=60), packet(PARITY, 0, 0, reflectivity=70)]
    scan = first_image_scan(payloads)
    assert scan.count == 4
    np.testing.assert_array_equal(scan.reflectivity, [50, 60, 70])
    np.testing.assert_allclose(scan.points_m, [[1.0, 2.0, -0.5]] * 3)


@pytest.mark.parametrize(("payloads", "changes"), [([packet(0, 0)], 0), ([packet(0, PARITY), packet(PARITY)], 1)])
def test_less_than_a_scan_says_how_much_there_is(payloads, changes):
    with pytest.raises(CaptureError, match=f"a picture needs one whole scan between two changes of the frame parity, got {changes} in"):
        first_image_scan(payloads)


def test_a_torn_packet_is_named():
    with pytest.raises(PacketError, match="an STDV packet of 2 points of 10 bytes behind 24 bytes of header must be whole, got 43 bytes"):
        first_image_scan([packet(0, PARITY)[:-1]])


def datagram(payload, source="127.0.2.1"):
    return CapturedDatagram(
        frame=1,
        host_stamp_ns=0,
        source=source,
        source_port=8808,
        destination="127.0.0.1",
        destination_port=8808,
        payload=payload,
        link=None,
        is_ethernet=False,
    )


def test_points_are_gathered_of_one_sensor_until_there_is_a_whole_scan():
    gathered = Gathered("")
    taken = [packet(0, 0), packet(0, PARITY), packet(PARITY, PARITY), packet(PARITY, 0)]
    for payload in taken:
        assert not gathered.is_enough()
        gathered.take(datagram(payload))
        gathered.take(datagram(packet(PARITY, 0, PARITY, 0), source="127.0.2.2"))
        gathered.take(datagram(bytes(1206)))
        gathered.take(datagram(b"INFZ" + bytes(84)))
    assert gathered.is_enough()
    assert gathered.sensor == "127.0.2.1"
    assert gathered.scan("x.pcap").count == first_image_scan(taken).count == 4


def pointing(azimuth_cdeg):
    return bytes(2) + azimuth_cdeg.to_bytes(2, "little") + bytes(1202)


@pytest.mark.parametrize("step_cdeg", [230, 4700])
def test_packets_of_a_turning_sensor_are_gathered_until_there_is_a_whole_turn_at_any_rate(step_cdeg):
    gathered, azimuth_cdeg = Gathered(""), 20_000
    while not gathered.is_enough():
        gathered.take(datagram(pointing(azimuth_cdeg % 36_000)))
        azimuth_cdeg += step_cdeg
    turned_cdeg = azimuth_cdeg - step_cdeg - 20_000
    assert turned_cdeg >= 16_000 + 2 * 36_000  # to azimuth 0, and two turns
    assert turned_cdeg < 16_000 + 2 * 36_000 + 2 * step_cdeg


def test_packets_of_the_older_generation_are_counted_and_not_gathered():
    gathered = Gathered("")
    gathered.take(datagram(b"STDT" + bytes(1042)))
    assert gathered.is_empty
    with pytest.raises(CaptureError, match=r"x\.pcap: no Velodyne data .* found; its Cepton STDT points are of an older generation"):
        gathered.scan("x.pcap")


@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_picture_is_drawn_of_however_many_returns(tmp_path, count):
    points_m = np.linspace((-1.0, 2.0, -1.0), (1.0, 60.0, 3.0), count).reshape(count, 3)
    scan = ImageScan(points_m=points_m, reflectivity=np.full(count, 255, np.uint8), count=count + 5)
    scan.draw(tmp_path / "scan.png", title="by hand", extent_m=30.0 if count == 1 else None)
    assert (tmp_path / "scan.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_named(tmp_path):
    scan = ImageScan(points_m=np.zeros((0, 3)), reflectivity=np.zeros(0, np.uint8), count=0)
    with pytest.raises(CaptureError, match=r"nowhere/scan\.png: the picture cannot be written: "):
        scan.draw(tmp_path / "nowhere" / "scan.png", title="by hand")
