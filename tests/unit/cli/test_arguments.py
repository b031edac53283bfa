"""Faults of arguments are reported before anything is done."""

import threading

import click
import pytest
from click.testing import CliRunner

from hilsim.cli.addresses import HostPort
from hilsim.cli.compare import compare
from hilsim.cli.outputs import ImageFile
from hilsim.cli.picture import picture
from hilsim.config.script import CHANGE_KINDS
from hilsim.daemon.control.grammar import CHANGES
from hilsim.transmit import hosts


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:2368", ("127.0.0.1", 2368)), (":0", ("0.0.0.0", 0)), ("localhost:9", ("127.0.0.1", 9))],  # noqa: S104 - an argument
)
def test_an_address_has_a_host_by_number_or_name_or_none(text, address):
    assert HostPort().convert(text, None, None) == address


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("localhost", 'must be HOST:PORT like 127.0.0.1:2368, got "localhost"'),
        ("10.0.0.256:1", 'host must be an IPv4 address or the name of a host, got "10.0.0.256"'),
        ("localhost:x", 'port must be 0 to 65535, got "x"'),
        ("localhost:70000", 'port must be 0 to 65535, got "70000"'),
        ("nowhere.invalid:1", r'host must be an IPv4 address or the name of a host that has one, got "nowhere\.invalid"'),
    ],
)
def test_an_invalid_address_is_reported(text, told):
    with pytest.raises(click.BadParameter, match=told):
        HostPort().convert(text, None, None)


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    asked = threading.Event()
    monkeypatch.setattr(hosts, "RESOLVING_S", 0.05)
    monkeypatch.setattr(hosts.socket, "getaddrinfo", lambda *_: asked.wait(5) and [])
    with pytest.raises(click.BadParameter, match=r"no answer within 0\.05 s"):
        HostPort().convert("slow.example:1", None, None)
    asked.set()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.bmp", r"must end in \.png, \.svg or \.pdf, got"),
        ("a", r"must end in \.png"),
        ("nowhere/a.png", "must be in an existing directory"),
        ("folder.png", "must be a file, got the directory"),
    ],
)
def test_an_image_that_cannot_be_written_is_reported(tmp_path, name, told):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(click.BadParameter, match=told):
        ImageFile().convert(str(tmp_path / name), None, None)


@pytest.mark.parametrize("name", ["a.png", "a.SVG", "b.pdf"])
def test_an_image_that_can_be_written_is_taken(tmp_path, name):
    assert ImageFile().convert(str(tmp_path / name), None, None) == tmp_path / name


@pytest.mark.parametrize(("command", "arguments"), [(picture, ["demo"]), (compare, ["a.pcap", "b.pcap"])])
def test_commands_that_draw_say_so_before_they_begin(command, arguments):
    done = CliRunner().invoke(command, [*arguments, "-o", "a.bmp"])
    assert (done.exit_code, "must end in .png, .svg or .pdf, got a.bmp" in done.stderr) == (2, True)


def test_control_knows_each_kind_of_change_without_importing_them():
    assert tuple(kind.kind for kind in CHANGE_KINDS) == CHANGES
