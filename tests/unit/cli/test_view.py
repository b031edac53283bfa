"""``hilsim view``: what its arguments must be, and the sentence where its packages are missing."""

import socket
import sys

import pytest
from click.testing import CliRunner

from hilsim.cli.view import view
from hilsim.errors import ConfigError, TransmitError
from hilsim.show.view.sources import is_daemon


def _run(*arguments):
    return CliRunner().invoke(view, [str(argument) for argument in arguments], standalone_mode=False, catch_exceptions=True)


@pytest.mark.parametrize("arguments", [(), ("a.pcap", "--listen", "127.0.0.1:2368")])
def test_one_source_must_be_given(arguments):
    assert "give either SOURCE" in str(_run(*arguments).exception)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:8080", ":8080"])
def test_the_page_is_exposed_on_request_only(address):
    assert "must be a loopback address without --expose" in str(_run("a.pcap", "--at", address).exception)


def test_a_missing_source_is_named():
    error = _run("/nowhere.pcap").exception
    assert isinstance(error, ConfigError)
    assert str(error) == "SOURCE must be a daemon's control socket, http://HOST:PORT or a capture, got /nowhere.pcap: No such file or directory"


def test_a_token_file_belongs_to_a_daemon_at_http(tmp_path):
    capture = tmp_path / "a.pcap"
    capture.touch()
    assert "--token-file must come with a daemon" in str(_run(capture, "--token-file", "x").exception)


def test_a_busy_port_is_an_error(tmp_path):
    capture = tmp_path / "a.pcap"
    capture.touch()
    with socket.create_server(("127.0.0.1", 0)) as busy:
        error = _run(capture, "--at", f"127.0.0.1:{busy.getsockname()[1]}").exception
    assert isinstance(error, TransmitError)
    assert "must be a free port" in str(error)


@pytest.mark.parametrize("package", ["viser", "msgspec"])
def test_a_missing_package_names_the_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    error = _run("a.pcap").exception
    assert isinstance(error, ConfigError)
    assert str(error) == f"hilsim view requires the package {package} (pip install 'hilsim-lidar[view]')"


def test_a_socket_and_an_address_are_daemons_and_a_file_is_a_capture(tmp_path):
    capture = tmp_path / "a.pcap"
    capture.touch()
    with socket.socket(socket.AF_UNIX) as control:
        control.bind(str(tmp_path / "control"))
        assert is_daemon(str(tmp_path / "control"))
    assert is_daemon("http://127.0.0.1:9466")
    assert not is_daemon(str(capture))
    for other in ("udp:127.0.0.1:9465", str(tmp_path)):
        with pytest.raises(ConfigError, match="control socket"):
            is_daemon(other)
