"""Ends of links: opened, closed and opened again, on real ports."""

import asyncio
import os
import socket

import pytest

from hilsim.errors import LinkError
from hilsim.transmit.links.endpoints import SerialEndpoint, TcpEndpoint, UdpEndpoint
from hilsim.transmit.links.line import NETWORK, LineKind, SerialSpec
from tests.cables import await_bytes


def test_a_serial_port_is_opened_again_after_it_was_gone(cable, tmp_path):
    async def scenario():
        endpoint = SerialEndpoint(SerialSpec(port=str(tmp_path / "port")), is_uart=True)
        plugged = cable(tmp_path / "port")
        first = await endpoint.open()
        os.write(first.descriptor, b"one")
        assert (plugged.read_whole(3), first.line.kind) == (b"one", LineKind.UART)
        endpoint.close_link()
        plugged.pull()
        again = cable(tmp_path / "port")
        second = await endpoint.open()
        os.write(second.descriptor, b"two")
        assert again.read_whole(3) == b"two"
        endpoint.close()

    asyncio.run(scenario())


def test_a_serial_port_that_is_missing_is_a_fault_of_the_link(tmp_path):
    with pytest.raises(LinkError, match="port must"):
        asyncio.run(SerialEndpoint(SerialSpec(port=str(tmp_path / "port"))).open())


def test_a_tcp_port_lets_in_one_peer_after_the_other(unused_tcp_port):
    async def scenario():
        port = unused_tcp_port
        endpoint = TcpEndpoint("127.0.0.1", port)
        for word in (b"one", b"two"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
                link = await endpoint.open()
                assert (link.device, link.line) == (f"127.0.0.1:{peer.getsockname()[1]}", NETWORK)
                os.write(link.descriptor, word)
                assert peer.recv(10) == word
                endpoint.close_link()
        endpoint.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=10)

    asyncio.run(scenario())


def test_a_udp_port_hears_its_peer_alone(udp_socket):
    async def scenario():
        peer, other = udp_socket(), udp_socket()
        endpoint = UdpEndpoint(*peer.getsockname())
        link = await endpoint.open()
        os.write(link.descriptor, b"one")
        data, address = peer.recvfrom(10)
        assert data == b"one"
        other.sendto(b"other", address)
        peer.sendto(b"two", address)
        await_bytes(link.descriptor, 3)
        assert os.read(link.descriptor, 10) == b"two"
        endpoint.close()

    asyncio.run(scenario())
