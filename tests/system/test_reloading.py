"""SIGHUP beside a stream: what is refused costs nothing, what is accepted costs no packet of a sensor that goes on."""

import itertools
import signal

import numpy as np
import pytest

from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, decode_data_packets
from tests.system.conftest import SCENE, sensor_table

pytestmark = pytest.mark.system

CYCLE_US = 1327.104


def stamps(received):
    packets = decode_data_packets(np.frombuffer(b"".join(payload for payload, _ in received), np.uint8).reshape(-1, DATA_PACKET_SIZE))
    return packets["timestamp"].astype(np.int64)


def missing(stamp_us):
    """Packets that are not there between the first and the last; none may be there twice."""
    steps = np.round(np.diff(stamp_us) % 3_600_000_000 / CYCLE_US).astype(int)
    assert (steps >= 1).all()
    return int((steps - 1).sum())


@pytest.fixture
def reload_of(daemon, rig):
    """A daemon, and a function that gives it another rig and waits for its word; returns that word."""
    transmit = '[transmit]\nlate_policy = "send"\n'  # what a busy machine sends late has not been lost by the reload

    def start(*tables):
        path = rig(*tables, scene=SCENE + transmit)
        running = daemon(path)

        def reload(*tables, scene=SCENE, text=None):
            said = len(running.text())
            if text is None:
                rig(*tables, scene=scene + transmit)
            else:
                path.write_text(text)
            running.process.send_signal(signal.SIGHUP)
            return running.await_log(r'"event": "(rig\.\w+)"', after=said)[1]

        return running, reload

    return start


REFUSED = {
    "broken TOML": "name = ",
    "nested too deep": "a=" + "[" * 5000 + "]" * 5000,
    "an integer without end": "seed = " + "9" * 5000,
    "nothing": "",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_refused_reload_costs_no_packet_and_no_counter(reload_of, receiver, text):
    data, position = receiver(), receiver()
    running, reload = reload_of(sensor_table("roof", data.port, position.port))
    before = data.take(100)
    assert reload(text=text) == "rig.reload_refused"
    received = stamps(before + data.take(300))
    assert missing(received) == 0
    assert running.process.poll() is None


@pytest.mark.parametrize(
    ("wrong", "word"),
    [('destination = "240.1.2.3"', "240.1.2.3"), ('source = "203.0.113.7"', "203.0.113.7"), ('interface = "nothere0"', "nothere0")],
    ids=["no route", "not our address", "no such interface"],
)
def test_a_socket_that_cannot_be_opened_is_reported_before_anything_is_changed(reload_of, receiver, wrong, word):
    data, position = receiver(), receiver()
    table = sensor_table("roof", data.port, position.port)
    running, reload = reload_of(table)
    before = data.take(100)
    changed = table.replace('source = "127.0.1.201"', "") + wrong if wrong.startswith("source =") else table + wrong
    assert reload(changed) == "rig.reload_refused"
    assert word in running.text()
    assert missing(stamps(before + data.take(300))) == 0


def test_a_moved_box_costs_no_packet(reload_of, receiver):
    data, position = receiver(), receiver()
    table = sensor_table("roof", data.port, position.port)
    _, reload = reload_of(table)
    before = data.take(100)
    for height_m in (3.0, 4.0, 5.0):
        assert reload(table, scene=SCENE.replace("height_m = 4.0", f"height_m = {height_m}\nname = 'pillar'")) == "rig.reloaded"
    assert missing(stamps(before + data.take(600))) == 0


def test_a_new_destination_gets_the_next_packet(reload_of, receiver):
    first, second, position = receiver(), receiver(), receiver()
    _, reload = reload_of(sensor_table("roof", first.port, position.port))
    before = first.take(100)
    assert reload(sensor_table("roof", second.port, position.port)) == "rig.reloaded"
    after = second.take(300)
    assert missing(stamps(before + first.drain() + after)) == 0


@pytest.mark.extended
def test_ten_refused_and_ten_accepted_changes_cost_an_unchanged_sensor_nothing(reload_of, receiver):
    steady, changing, position = receiver(), receiver(), receiver()
    table = sensor_table("steady", steady.port, position.port)
    _, reload = reload_of(table, sensor_table("changing", changing.port, position.port).replace("127.0.1.201", "127.0.1.202"))
    received = steady.take(50)
    rates, texts = itertools.cycle([300, 1200, 600]), itertools.cycle(REFUSED.values())
    for _ in range(10):
        changed = sensor_table("changing", changing.port, position.port, extra=f"rotation_rate_rpm = {next(rates)}").replace(
            "127.0.1.201", "127.0.1.202"
        )
        assert reload(table, changed) == "rig.reloaded"
        assert reload(text=next(texts)) == "rig.reload_refused"
        received += steady.drain()  # on a busy machine all ten take longer than the socket's buffer lasts
    received += steady.take(200)
    assert missing(stamps(received)) == 0
