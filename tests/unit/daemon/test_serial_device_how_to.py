"""The device on the page docs/how-to/add-a-serial-device.md is a serial device."""

import re
import sys
import types
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "add-a-serial-device.md"
SECOND_NS = 1_000_000_000


@pytest.fixture
def shown(monkeypatch):
    """The page's table and its device, as one module."""
    module = types.ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[:1]:
        exec(block, module.__dict__)  # noqa: S102 - our own page
    return module


def test_the_device_of_the_page_writes_the_date_each_second_and_answers(shown):
    device = shown.HeartbeatDevice()
    device.begin(1_700_000_000 * SECOND_NS)
    due = device.frames(0, SECOND_NS) + device.frames(SECOND_NS, 2 * SECOND_NS + 1)
    assert [frame.time_ns for frame in due] == [0, SECOND_NS, 2 * SECOND_NS]
    assert due[1].data == b"2023-11-14T22:13:21\n"
    assert device.skip(1, 3 * SECOND_NS) == 2
    assert device.receive(b"?x?", 0) == [b"heartbeat\n"] * 2


def test_every_table_of_the_page_is_a_device_at_its_port(shown):
    specs = tuple(shown.HeartbeatSpec(port=port) for port in ("/dev/a", "/dev/b"))
    rig = types.SimpleNamespace(spec=types.SimpleNamespace(part={"heartbeat": specs}.get))
    devices = shown.KIND.devices(rig, lambda: pytest.fail("it looks at nothing"))
    assert [(device.name, device.serial.port, device.serial.baud) for device in devices] == [
        ("heartbeat-1", "/dev/a", 9600),
        ("heartbeat-2", "/dev/b", 9600),
    ]


def test_the_table_of_the_page_has_the_rules_of_a_serial_port(shown):
    with pytest.raises(ValueError, match=r'port must be absolute, such as .*, got "ttyS1"'):
        shown.HeartbeatSpec(port="ttyS1")
