"""The web interface of a real daemon's sensor: what clients of real units request and set, and what packets show then."""

# ruff: noqa: S310 - only addresses of daemons that these tests start

import asyncio
import json
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hilsim
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from tests.support import write_rig
from tests.system.browsers import browser, pixels, window
from tests.system.conftest import SCENE
from tests.system.test_changes import CONTROL, sensor

pytestmark = pytest.mark.system

WEB = "[sensor.web]\nport = 0\nboot_s = 1.0\n"


class Client:
    """Requests as a setup tool sends them."""

    def __init__(self, address):
        self.address = address

    def get(self, path, **headers):
        with urllib.request.urlopen(urllib.request.Request(f"{self.address}{path}", headers=headers), timeout=20) as answer:
            return answer.status, answer.headers.get_content_type(), answer.read().decode()

    def json(self, name):
        status, kind, text = self.get(f"/cgi/{name}")
        assert (status, kind) == (200, "application/json")
        return json.loads(text)

    def post(self, path, headers=(), body=None, **keys):
        """Status and text of the answer to a form."""
        data = urllib.parse.urlencode(keys).encode() if body is None else body
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{self.address}{path}", data, dict(headers)), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture
def bench(daemon, tmp_path, receiver):
    data, position = receiver(), receiver()
    path = write_rig(tmp_path, SCENE.replace("seed = 5", "seed = 5\nlead_ms = 8.0") + sensor("lidar", data.port, position.port) + WEB + CONTROL)
    running = daemon(path)
    address = running.await_log(r'"event": "sensor\.web".*"address": "(http://[^"]+)"')[1]
    return running, Client(address), data, position, hilsim.connect(tmp_path / "control")


def packets(stream, count=200):
    """Data packets that come after those that were rendered ahead."""
    stream.drain()
    stream.take(50)
    return np.frombuffer(b"".join(payload for payload, _ in stream.take(count)), DATA_PACKET_DTYPE)


def until(condition, timeout_s=30.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rpm(found):
    """Rotation rate by azimuths and stamps."""
    turned_cdeg = np.diff(found["blocks"]["azimuth"][:, 0].astype(int)) % 36_000
    return np.median(turned_cdeg / np.diff(found["timestamp"].astype(int))) * 60e6 / 36_000


def test_documents_are_those_of_a_real_sensor(bench):
    _, client, _, position, _ = bench
    assert client.json("info.json")["model"] == "VLP-16"
    assert client.json("settings.json")["host"] == {"addr": "127.0.0.1", "dport": str(bench[2].port), "tport": str(position.port)}
    first, second = client.json("status.json"), client.json("status.json")
    assert (first["motor"]["rpm"], first["motor"]["state"], first["laser"]["state"]) == (600, "On", "On")
    assert first["motor"]["phase"] != second["motor"]["phase"]
    assert set(client.json("snapshot.hdl")) == {"config", "diag", "status", "info"}
    assert client.json("diag.json")["volt_temp"]["bot"]["pwr_v_in"] > 800
    status, kind, text = client.get("/")
    assert (status, kind) == (200, "text/html")
    assert "Motor speed" in text


def test_settings_act_on_the_stream_and_are_timed_changes(bench):
    _, client, data, _, control = bench
    assert client.post("/cgi/setting", rpm=1200, returns="Dual") == (204, "")
    assert set(packets(data)["return_mode"]) == {0x39}
    until(lambda: rpm(packets(data)) == pytest.approx(1200, abs=12))
    assert client.post("/cgi/setting/fov", start=350, end=90)[0] == 204
    azimuth = packets(data)["blocks"]["azimuth"].astype(int)
    assert ((azimuth <= 9099) | (azimuth >= 35_000)).all()
    assert client.post("/cgi/setting", laser="off")[0] == 204
    assert not packets(data)["blocks"]["channels"]["distance"].any()
    assert (client.json("settings.json")["laser"], client.json("status.json")["laser"]["state"]) == ("Off", "Off")
    assert [change["kind"] for change in control.script()] == ["sensor"] * 3
    control.change("sensor", sensor="lidar", laser=True, return_mode="last")
    assert (client.json("settings.json")["laser"], client.json("settings.json")["returns"]) == ("On", "Last")


def test_a_motor_that_stands_still_sends_no_data_and_position_packets_go_on(bench):
    _, client, data, position, control = bench
    assert client.post("/cgi/setting", rpm=0)[0] == 204
    until(lambda: control.state()["sensors"]["lidar"]["flows"]["data"]["silenced_packets"] > 100)
    data.drain()
    position.drain()
    position.take(50)
    assert data.drain() == []
    assert (client.json("status.json")["motor"]["rpm"], client.json("status.json")["laser"]["state"]) == (0, "Disabled")
    assert client.post("/cgi/setting", rpm=300)[0] == 204
    until(lambda: rpm(packets(data)) == pytest.approx(300, abs=6))


def test_another_destination_gets_the_packets(bench, receiver):
    _, client, data, _, _ = bench
    other = receiver()
    data.take(20)
    assert client.post("/cgi/setting/host", addr="127.0.0.1", dport=other.port)[0] == 204
    other.take(200)
    data.drain()
    other.take(200)
    assert data.drain() == []
    assert client.json("settings.json")["host"]["dport"] == str(other.port)


@pytest.mark.extended
@pytest.mark.parametrize("reset", [{"data": "reset_system"}, {"body": b"reset_system"}], ids=["form", "word"])
def test_a_reset_is_a_pause_after_which_saved_settings_are_back(bench, reset):
    _, client, data, _, control = bench
    assert client.post("/cgi/setting", returns="Last")[0] == 204
    assert client.post("/cgi/save", data="submit")[0] == 204
    until(lambda: client.post("/cgi/setting", returns="Dual", rpm=900)[0] == 204)  # a busy machine refuses a rate that it cannot prepare in time
    assert client.post("/cgi/reset", data="something")[0] == client.post("/cgi/reset", body=b"something")[0] == 400
    assert client.post("/cgi/reset", **reset)[0] == 204
    until(lambda: control.state()["sensors"]["lidar"]["flows"]["data"]["silenced_packets"] > 100)
    until(lambda: client.json("settings.json")["returns"] == "Last")
    assert set(packets(data)["return_mode"]) == {0x38}
    until(lambda: rpm(packets(data)) == pytest.approx(600, abs=6))


def test_a_brown_out_leaves_requests_without_an_answer_and_then_saved_settings_hold(bench):
    _, client, data, _, control = bench
    assert client.post("/cgi/setting", returns="Last")[0] == 204
    assert client.post("/cgi/save", data="submit")[0] == 204
    assert client.post("/cgi/setting", returns="Dual")[0] == 204
    control.fault("brown_out", "lidar", off_ms=500.0, down_ms=1500.0)
    with pytest.raises(OSError, match=r"closed|reset|Remote end"):
        until(lambda: not client.json("settings.json"))
    refused_s = time.monotonic()
    until(lambda: answers(client))
    assert time.monotonic() - refused_s > 0.5
    until(lambda: client.json("settings.json")["returns"] == "Last")
    found = packets(data)
    assert set(found["return_mode"]) == {0x38}
    assert found["timestamp"].max() < 30e6


def flattened(document):
    for value in document.values():
        yield from flattened(value) if isinstance(value, dict) else [value]


def answers(client):
    try:
        return bool(client.json("status.json"))
    except OSError:
        return False


def test_saved_settings_are_those_of_the_next_start_where_the_rig_names_a_file(daemon, tmp_path, receiver):
    data, other, position = receiver(), receiver(), receiver()
    rig = SCENE.replace("seed = 5", "seed = 5\nlead_ms = 8.0") + sensor("lidar", data.port, position.port) + WEB + 'saved_file = "saved.json"\n'
    path = write_rig(tmp_path, rig + CONTROL)

    def started():
        running = daemon(path)
        return running, Client(running.await_log(r'"event": "sensor\.web".*"address": "(http://[^"]+)"')[1])

    running, client = started()
    assert client.post("/cgi/setting", rpm=900, returns="Dual")[0] == 204
    assert client.post("/cgi/setting/host", dport=other.port)[0] == 204
    assert client.post("/cgi/setting/fov", start=300, end=60)[0] == 204
    saved = client.json("settings.json")
    assert not (tmp_path / "saved.json").exists()
    assert client.post("/cgi/save", data="submit")[0] == 204
    assert client.post("/cgi/setting", returns="Last")[0] == 204
    assert running.stop()[0] == 0
    other.drain()
    running, client = started()
    running.await_log(r'"event": "sensor\.web\.saved_used"')
    assert client.json("settings.json") == saved
    assert set(packets(other)["return_mode"]) == {0x39}
    assert running.stop()[0] == 0
    (tmp_path / "saved.json").write_text('{"rpm": 900}')
    running, client = started()
    running.await_log(r'"event": "sensor\.web\.saved_not_used".*settings must have every table')
    assert client.json("settings.json")["rpm"] == 600


SEQUENCES = {
    # What a client asks for, sends in one body each, and reads back (formats known from the sources of three programs).
    "a command line that sets everything": [
        ("/cgi/setting", "rpm=600&laser=on&returns=Strongest"),
        ("/cgi/setting/fov", "start=0&end=359&pwrsaven=off"),
        ("/cgi/setting/ppsctl", "gpsrxv=off&ppslck=off&delay=5"),
        ("/cgi/setting/gpsctl", "gpsrxv=off"),
        ("/cgi/setting/phaselock", "enabled=off&offset=0"),
        ("/cgi/setting/host", "addr={host}&dport={data}&tport={position}&udpcs=off"),
        ("/cgi/setting/net", "addr=127.0.1.201&mask=255.255.255.0&gateway=192.168.1.1&dhcp=off&mac_addr=60-76-88-10-2f-6f"),
        ("/cgi/save", "data=submit"),
    ],
    "a node that sets one key at a time, again and again": [
        ("/cgi/setting", "laser=off"),
        ("/cgi/setting", "laser=on"),
        ("/cgi/setting", "rpm=600"),
        ("/cgi/setting", "rpm=600"),
        ("/cgi/setting", "returns=Dual"),
        ("/cgi/setting", "returns=Strongest"),
        ("/cgi/setting/fov", "start=10"),
        ("/cgi/setting/fov", "end=350"),
        ("/cgi/setting/fov", "start=0"),
        ("/cgi/setting/fov", "end=359"),
        ("/cgi/setting/host", "dport={data}"),
        ("/cgi/save", "data=submit"),
    ],
    "a script that locks the phase and saves": [
        ("/cgi/setting/phaselock", "enabled=on&offset=18000&offsetInput=180"),
        ("/cgi/setting/phaselock", "offset=9000"),
        ("/cgi/setting/phaselock", "enabled=off"),
        ("/cgi/save", "submit=submit"),
    ],
}


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_the_requests_of_three_clients_are_answered_as_they_expect(bench, sequence):
    _, client, data, position, _ = bench
    before = client.json("settings.json")
    for path, body in sequence:
        client.json("status.json")
        text = body.format(host="127.0.0.1", data=data.port, position=position.port)
        status, answer = client.post(path, body=text.encode(), headers={"Content-Type": "application/x-www-form-urlencoded"})
        assert 200 <= status < 300, (path, text, answer)
        client.json("settings.json")
    after = client.json("settings.json")
    assert {**after, "phaselock": None} == {**before, "phaselock": None}
    assert after["phaselock"]["enabled"] == "Off"
    assert packets(data).size == 200


@pytest.mark.extended
def test_what_a_browser_or_a_wrong_client_sends_is_refused_and_the_stream_goes_on(bench):
    running, client, data, _, control = bench
    assert client.post("/cgi/setting", rpm=610)[0] == 400
    assert "steps of 60" in client.post("/cgi/setting", rpm=610)[1]
    assert client.post("/cgi/setting/fov", start=0, end=360)[0] == 400
    assert client.post("/cgi/setting", headers={"Origin": "http://evil.example"}, rpm=1200)[0] == 403
    assert client.post("/cgi/setting", headers={"Host": "evil.example"}, rpm=1200)[0] == 403
    assert client.post("/cgi/setting", body=b"rpm=1200&" + b"x" * 100_000)[0] == 413
    assert client.post("/cgi/setting", body=b"\xff\xfe")[0] == 400
    assert client.post("/cgi/setting", body=b"{}")[0] == 400
    with pytest.raises(urllib.error.HTTPError, match="405"):
        client.get("/cgi/setting")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        client.get("/cgi/../../etc/passwd")
    host, port = client.address.removeprefix("http://").split(":")
    for _ in range(100):  # more than may be open
        with socket.create_connection((host, int(port))) as opened:
            opened.send(b"POST /cgi/setting HTTP/1.1\r\nContent-Length: 9")
    assert [client.post("/cgi/setting", rpm=600)[0] for _ in range(3)] == [204] * 3
    assert control.script() == ()
    assert set(packets(data)["return_mode"]) == {0x37}
    assert running.stop()[0] == 0


def test_a_web_interface_of_a_cepton_or_at_a_busy_port_is_refused(tmp_path, daemon):
    rig = '[[sensor]]\nname = "a"\nprofile = "hr80w-like"\n[sensor.web]\nport = 0\n'
    with pytest.raises(hilsim.ConfigError, match=r"web must not be given for a .*: it has no interface"):
        hilsim.load_rig(write_rig(tmp_path, f'name = "a"\n{rig}'))
    with socket.create_server(("127.0.1.201", 0)) as taken:
        text = SCENE + sensor("lidar", 23_680, 23_681) + f"[sensor.web]\nport = {taken.getsockname()[1]}\n"
        running = daemon(write_rig(tmp_path, text), wait=False)
        assert running.process.wait() == 1
    assert "sensor.web.port of lidar must be a free port of 127.0.1.201" in running.text()


@pytest.mark.extended
@pytest.mark.asyncio
async def test_a_browser_shows_the_sensor_and_sets_it(bench):
    """Its picture is that of docs/how-to/sensor-web-page.md: ``HILSIM_PICTURES=docs/images`` writes it anew."""
    _, client, data, _, _ = bench
    async with browser() as opened, window(opened, 1000, 760) as shown:
        await shown.goto(client.address)
        await shown.get_by_text("MAC: 60-76-88").wait_for()
        await shown.get_by_text("motor.rpm").wait_for()
        await shown.wait_for_function("document.forms[0].rpm.value === '600'")
        await shown.locator("[name=rpm]").fill("1200")
        await shown.locator("[name=returns]").select_option("Last")
        await shown.locator("[name=start]").fill("400")  # stays while another form is set
        await shown.get_by_role("button", name="Set").first.click()
        await asyncio.to_thread(until, lambda: client.json("settings.json")["rpm"] == 1200)
        assert set(packets(data)["return_mode"]) == {0x38}
        await shown.get_by_role("button", name="Set").nth(1).click()
        await shown.get_by_text("start must be 0 to 359").wait_for()
        await shown.locator("[name=start]").fill("0")
        await shown.get_by_role("button", name="Set").nth(1).click()
        if "HILSIM_PICTURES" in os.environ:
            picture = Image.fromarray(await pixels(shown)).resize((800, 608), Image.Resampling.LANCZOS)
            picture.quantize(64).save(Path(os.environ["HILSIM_PICTURES"], "sensor-page.png"), optimize=True)
    assert client.json("settings.json")["fov"] == {"start": 0, "end": 359}


def test_a_broken_sensor_says_on_its_page_what_its_packets_show(bench):
    _, client, data, position, control = bench
    control.fault("motor_stall", ramp_s=0.5)
    control.fault("pps_error")
    until(lambda: client.json("status.json")["motor"]["rpm"] == 0)
    assert rpm(packets(data)) == pytest.approx(0, abs=3)
    assert client.json("status.json")["gps"]["pps_state"] == "Error"
    control.fault("overheated", temperature_c=80)
    until(lambda: client.json("status.json")["motor"]["state"] == "Disabled")
    assert client.json("status.json")["laser"]["state"] == "Disabled"
    assert set(flattened(client.json("diag.json"))) == {0}
    assert client.json("settings.json")["rpm"] == 600
    position.drain()
    position.take(2)
    assert (*position.take(1)[0][0][202:205],) == (3, 1, 80)
    control.clear()
    until(lambda: client.json("status.json")["motor"]["rpm"] == 600)
    assert rpm(packets(data)) == pytest.approx(600, abs=6)
