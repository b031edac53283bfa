"""Which recorded flows are replayed, and from which addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.parts.replays.flows import Endpoints, FlowRule, LoopbackSources, find_rule, parse_endpoints
from hilsim.protocols.flow_key import FlowKey
from hilsim.transmit.hosts import is_ipv4
from tests.unit.replays.streams import CAMERA, OTHER_SENSOR, SENSOR

ADDRESSES = st.ip_addresses(v=4).map(str)
PORTS = st.integers(1, 65_535)
FLOWS = st.builds(FlowKey, ADDRESSES, PORTS, ADDRESSES, PORTS)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("", 0, "", 0)),
        (">", ("", 0, "", 0)),
        ("192.168.1.201", ("192.168.1.201", 0, "", 0)),
        (":2368", ("", 2368, "", 0)),
        ("192.168.1.201:2368", ("192.168.1.201", 2368, "", 0)),
        (">:8808", ("", 0, "", 8808)),
        (">10.0.0.1", ("", 0, "10.0.0.1", 0)),
        ("192.168.1.201>:8808", ("192.168.1.201", 0, "", 8808)),
        ("1.2.3.4:5>6.7.8.9:10", ("1.2.3.4", 5, "6.7.8.9", 10)),
        (" 1.2.3.4 : 5 > 6.7.8.9 : 10 ", ("1.2.3.4", 5, "6.7.8.9", 10)),
    ],
)
def test_every_part_of_an_endpoint_may_be_left_out(text, parts):
    assert parse_endpoints(text) == Endpoints(source=parts[0], source_port=parts[1], destination=parts[2], destination_port=parts[3])


@given(FLOWS)
def test_a_flow_as_people_write_it_is_read_back_and_matches_itself(flow):
    assert parse_endpoints(str(flow)).matches(flow)
    assert FlowKey(*vars(parse_endpoints(str(flow))).values()) == flow


@given(FLOWS, FLOWS, st.sets(st.integers(0, 3)))
def test_a_pattern_matches_exactly_the_flows_that_have_all_its_parts(flow, other, given_parts):
    pattern = Endpoints(**{name: value for number, (name, value) in enumerate(flow._asdict().items()) if number in given_parts})
    assert pattern.matches(flow)
    assert pattern.matches(other) == all(flow[number] == other[number] for number in given_parts)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("lidar", 'an endpoint must be ADDRESS:PORT (each may be left out), got "lidar" in "lidar"'),
        ("1.2.3", 'got "1.2.3" in "1.2.3"'),
        ("1.2.3.4>host:5", 'got "host:5" in "1.2.3.4>host:5"'),
        ("1.2.3.4>5.6.7.8>9.9.9.9", 'got "5.6.7.8>9.9.9.9"'),
        (":0", 'a port must be 1 to 65535, got "0" in ":0"'),
        (":65536", 'a port must be 1 to 65535, got "65536" in ":65536"'),
        ("1.2.3.4:", 'a port must be 1 to 65535, got "" in "1.2.3.4:"'),
        (">:-1", 'a port must be 1 to 65535, got "-1" in ">:-1"'),
        (":²", 'a port must be 1 to 65535, got "²" in ":²"'),
        ("1.2.3.4:80:90", 'a port must be 1 to 65535, got "80:90"'),
    ],
)
def test_a_fault_names_the_part_that_is_wrong(text, fault):
    with pytest.raises(ValueError, match="must be") as error:
        FlowRule(send=text)
    assert fault in str(error.value)


def test_both_faults_of_an_endpoint_are_named_at_once():
    with pytest.raises(ValueError, match=r'ADDRESS:PORT.*"host:x".*; a port must be 1 to 65535, got "x"'):
        FlowRule(match="host:x")


@given(st.text("0123456789.:> abc", max_size=40))
def test_whatever_is_written_is_read_or_refused_with_a_reason(text):
    try:
        endpoints = parse_endpoints(text)
    except ValueError as error:
        assert "must be" in str(error)  # noqa: PT017 - either is sound
    else:
        assert all(not address or is_ipv4(address) for address in (endpoints.source, endpoints.destination))
        assert all(0 <= port <= 65_535 for port in (endpoints.source_port, endpoints.destination_port))


def test_the_first_rule_that_matches_counts():
    rules = (FlowRule(match="192.168.1.201>:9", send=":1"), FlowRule(match="192.168.1.201", send=":2"), FlowRule(match="", send=":3"))
    assert find_rule(rules, SENSOR) is rules[1]
    assert find_rule(rules, CAMERA) is rules[2]
    assert find_rule(rules[::-1], SENSOR) is rules[2]


def test_without_rules_everything_is_replayed_and_with_rules_only_what_matches():
    assert find_rule((), CAMERA) == FlowRule()
    assert find_rule((FlowRule(match=":2368"),), CAMERA) is None
    assert find_rule((FlowRule(match=":2368"),), OTHER_SENSOR) is not None


# -- addresses of the loopback network --------------------------------------------------------------------------------------------------


def test_a_sources_loopback_address_ends_like_its_own():
    sources = LoopbackSources()
    assert sources.address("front", "192.168.1.201") == "127.0.1.201"
    assert sources.address("front", "10.9.8.7") == "127.0.8.7"


def test_two_replays_of_one_sensor_leave_from_two_addresses():
    sources = LoopbackSources()
    assert [sources.address(owner, "192.168.1.201") for owner in ("front", "rear", "front")] == ["127.0.1.201", "127.1.1.201", "127.0.1.201"]


def test_two_sources_whose_addresses_end_alike_leave_from_two_addresses():
    sources = LoopbackSources()
    assert {sources.address("front", f"10.{second}.1.201") for second in range(5)} == {f"127.{second}.1.201" for second in range(5)}


def test_a_source_recorded_on_a_loopback_network_keeps_its_address():
    assert LoopbackSources().address("front", "127.0.3.4") == "127.0.3.4"
    assert LoopbackSources().address("front", "127.0.0.1") == "127.1.0.1"


def test_addresses_of_others_are_left_to_them_also_when_they_come_later():
    sources = LoopbackSources(taken=("127.0.1.201",))
    assert sources.address("front", "192.168.1.201") == "127.1.1.201"
    sources.leave_to_others(("127.2.1.201",))
    assert sources.address("rear", "192.168.1.201") == "127.3.1.201"


def test_hundreds_of_replays_of_one_capture_still_have_an_address_each():
    sources = LoopbackSources(taken=("127.1.0.1",))
    addresses = [sources.address(f"replay-{number}", "192.168.1.201") for number in range(300)]
    assert len(set(addresses)) == 300
    assert "127.1.0.1" not in addresses


@given(st.lists(st.tuples(st.sampled_from("abc"), ADDRESSES), max_size=60), st.sets(ADDRESSES, max_size=10))
def test_addresses_are_loopback_distinct_stable_and_never_the_hosts_own(asked, taken):
    sources = LoopbackSources(taken=taken)
    given_addresses = {pair: sources.address(*pair) for pair in asked}
    assert len(set(given_addresses.values())) == len(given_addresses)
    for pair, address in given_addresses.items():
        assert address.startswith("127.")
        assert address not in {*taken, "127.0.0.1", "127.0.0.0", "127.255.255.255"}
        assert sources.address(*pair) == address
