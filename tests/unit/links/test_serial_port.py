"""Opening a serial port, on pseudo-terminals."""

import os
import subprocess
import sys
import termios

import pytest

from hilsim.errors import LinkError
from hilsim.transmit.links.line import Line, LineKind, SerialSpec
from hilsim.transmit.links.port_owners import port_holder, socket_holder
from hilsim.transmit.links.serial_port import kind_of, open_serial

HOLD = "import os, sys; held = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def holding():
    """Another process that has a path open."""
    started = []

    def hold(path):
        started.append(subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"held\n"
        return started[-1]

    yield hold
    for process in started:
        process.communicate()


@pytest.fixture
def opened():
    ports = []

    def remember(port):
        ports.append(port)
        return port

    yield remember
    for port in ports:
        port.close()


def test_bytes_go_both_ways_unchanged(cable, opened):
    plug = cable()
    port = opened(open_serial(SerialSpec(port=plug.device)))
    every = bytes(range(256))
    plug.write(every, to=port.descriptor)
    assert os.read(port.descriptor, 1000) == every
    os.write(port.descriptor, every)
    assert plug.read_whole(len(every)) == every


def test_the_port_is_raw_non_blocking_exclusive_and_does_not_hang_up(cable, opened):
    port = opened(open_serial(SerialSpec(port=cable().device, baud=115_200)))
    iflag, oflag, cflag, lflag, in_speed, out_speed, cc = termios.tcgetattr(port.descriptor)
    assert (iflag, oflag & termios.OPOST, cflag & termios.HUPCL) == (0, 0, 0)
    assert lflag & (termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN) == 0
    assert (in_speed, out_speed, cc[termios.VMIN], cc[termios.VTIME]) == (termios.B115200, termios.B115200, 1, 0)
    assert not os.get_blocking(port.descriptor)
    with pytest.raises(BlockingIOError):
        os.read(port.descriptor, 1)


def test_an_odd_rate_is_set(cable, opened):
    port = opened(open_serial(SerialSpec(port=cable().device, baud=123_456)))
    assert port.port.baudrate == 123_456


def test_a_second_opening_is_refused(cable, opened):
    plug = cable()
    opened(open_serial(SerialSpec(port=plug.device)))
    with pytest.raises(LinkError, match=f"{plug.device}: the port must open, got .*: end the program that uses it"):
        open_serial(SerialSpec(port=plug.device))


def test_a_busy_port_names_who_holds_it(cable, holding, tmp_path):
    plug = cable(tmp_path / "controller")
    process = holding(plug.device)
    assert port_holder(plug.device).endswith(f"(pid {process.pid})")
    with pytest.raises(LinkError, match=rf"controller: the port must be free, got it in use by python\S* \(pid {process.pid}\): end it"):
        open_serial(SerialSpec(port=str(tmp_path / "controller")))


def test_a_free_port_and_a_path_that_is_not_there_have_no_holder(cable):
    assert port_holder(cable().device) == ""
    assert port_holder("/dev/nothing-of-that-name") == ""


def test_an_end_that_left_frees_the_port(cable, holding, opened):
    plug = cable()
    holding(plug.device).communicate()
    assert opened(open_serial(SerialSpec(port=plug.device))).device == plug.device


def test_a_missing_port_is_named_with_what_to_do():
    with pytest.raises(LinkError, match=r"/dev/ttyACM_none: the port must open, got No such file or directory: plug the device in"):
        open_serial(SerialSpec(port="/dev/ttyACM_none"))


def test_a_file_is_no_serial_port(tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(LinkError, match="file: the port must open"):
        open_serial(SerialSpec(port=str(tmp_path / "file")))


def test_a_device_of_another_name_is_found_by_the_name_that_stays(cable, tmp_path, opened):
    first = cable(tmp_path / "usb-controller")
    port = opened(open_serial(SerialSpec(port=str(tmp_path / "usb-controller"))))
    other = cable()  # takes a number, as another device would
    first.pull()
    assert os.read(port.descriptor, 1) == b""
    port.close()
    second = cable(tmp_path / "usb-controller")
    again = opened(open_serial(SerialSpec(port=str(tmp_path / "usb-controller")), name=port.name))
    assert (port.device, again.device, port.name == again.name) == (first.device, second.device, True)
    second.write(b"back", to=again.descriptor)
    assert os.read(again.descriptor, 10) == b"back"
    assert other.device != second.device


def test_a_device_given_by_its_number_is_found_again_under_another(cable, tmp_path, opened):
    first = cable(tmp_path / "usb-controller")
    port = opened(open_serial(SerialSpec(port=first.device), by_id=tmp_path))
    assert port.name == str(tmp_path / "usb-controller")
    second = cable(tmp_path / "usb-controller")
    again = opened(open_serial(SerialSpec(port=first.device), name=port.name, by_id=tmp_path))
    assert again.device == second.device


def test_a_port_without_a_name_that_stays_keeps_its_path(cable, tmp_path, opened):
    plug = cable()
    assert opened(open_serial(SerialSpec(port=plug.device), by_id=tmp_path)).name == plug.device
    assert opened(open_serial(SerialSpec(port=cable().device), by_id=tmp_path / "none")).name != plug.device


@pytest.mark.parametrize(
    ("driver", "kind"), [("cdc_acm", LineKind.USB), ("ftdi_sio", LineKind.UART), ("cp210x", LineKind.UART), ("port", LineKind.UART)]
)
def test_the_driver_says_what_the_rate_means(tmp_path, driver, kind):
    (tmp_path / "drivers" / driver).mkdir(parents=True)
    (tmp_path / "ttyX0" / "device").mkdir(parents=True)
    (tmp_path / "ttyX0" / "device" / "driver").symlink_to(tmp_path / "drivers" / driver)
    assert kind_of("/dev/ttyX0", tmp_path) is kind


def test_without_a_driver_the_name_says_what_the_rate_means(tmp_path, cable):
    assert kind_of("/dev/ttyACM3", tmp_path) is LineKind.USB
    assert kind_of("/dev/ttyUSB0", tmp_path) is LineKind.UART
    assert kind_of(cable().device, tmp_path) is LineKind.USB


@pytest.mark.parametrize(("said", "kind"), [(None, LineKind.USB), (True, LineKind.UART), (False, LineKind.USB)])
def test_the_rigs_setting_of_a_port_outranks_the_device(opened, cable, said, kind):
    port = opened(open_serial(SerialSpec(port=cable().device, baud=115_200), is_uart=said))
    assert port.line == Line(kind, 115_200)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"port": "ttyACM0"}, 'port must be absolute, such as .*, got "ttyACM0"'),
        ({"port": "/dev/x", "baud": 300}, "baud must be 1200 to 12000000, got 300"),
    ],
)
def test_an_impossible_port_is_refused(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        SerialSpec(**arguments)


def test_the_holder_of_a_network_port_is_named():
    script = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        port = int(process.stdout.readline())
        assert socket_holder("udp", port).endswith(f"(pid {process.pid})")
        assert socket_holder("tcp", port) == ""
        process.communicate()
