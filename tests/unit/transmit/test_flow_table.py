"""Targets of flows, as the sending loop reads them."""

import socket
import sys

from hilsim.transmit.flow_table import allocate_flow_table, pack_address, select_target, set_active


def test_a_new_target_is_selected_and_the_one_in_use_is_not_written():
    table = allocate_flow_table(2)
    select_target(table, 1, 7, pack_address("192.168.1.77", 2368))
    in_use = int(table.selected[1])
    before = table.address[1, in_use].copy(), int(table.descriptor[1, in_use])
    select_target(table, 1, 8, pack_address("10.0.0.1", 99))
    assert table.selected[1] == 1 - in_use
    assert table.descriptor[1].tolist()[in_use] == before[1]
    assert bytes(table.address[1, in_use]) == bytes(before[0])
    assert table.descriptor[1, 1 - in_use] == 8


def test_an_address_is_packed_as_the_c_library_has_it():
    assert pack_address("192.168.1.77", 2368) == socket.AF_INET.to_bytes(2, sys.byteorder) + b"\x09\x40\xc0\xa8\x01\x4d" + bytes(8)


def test_a_target_without_an_address_leaves_it_to_the_socket():
    table = allocate_flow_table(1)
    select_target(table, 0, 7, b"")
    assert table.address_size[0, table.selected[0]] == 0


def test_a_flow_is_served_only_when_configured():
    table = allocate_flow_table(2)
    set_active(table, 1, active=True)
    assert table.active.tolist() == [0, 1]
    set_active(table, 1, active=False)
    assert table.active.tolist() == [0, 0]
