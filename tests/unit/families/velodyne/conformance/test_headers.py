"""Headers of captured packets."""

from struct import pack, unpack

import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.velodyne.conformance.headers import HeadersTopic


class Reports(list):
    """Takes what a topic reports."""

    def report(self, rule, _message):
        self.append(rule.id)


@pytest.mark.parametrize(("is_valid", "reported"), [(False, ["header.own", "header.offload"]), (True, ["header.own"])])
def test_a_valid_checksum_that_is_the_partial_one_by_chance_is_no_offload(is_valid, reported):
    pseudo = sum(unpack(">4H", bytes([192, 168, 1, 201, 192, 168, 1, 77]))) + 17 + 10
    partial = pseudo % 65535
    word = -(2 * pseudo + 8308 + 8308 + 10) % 65535 + (not is_valid)
    ip = bytes.fromhex("4500001e00004000ff110000") + bytes([192, 168, 1, 201, 192, 168, 1, 77])
    link = bytes.fromhex("ffffffffffff02000000000a0800") + ip + pack(">4H", 8308, 8308, 10, partial)
    datagram = CapturedDatagram(0, "192.168.1.201", 8308, "192.168.1.77", 8308, pack(">H", word), link, is_ethernet=True, frame=1)
    topic, reports = HeadersTopic(is_data=False), Reports()
    topic.look([datagram], 0)
    topic.conclude(reports, None)
    assert reports == reported
