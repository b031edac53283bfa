"""Frames by pymavlink, the judge of ours."""

import numpy as np
from hypothesis import strategies as st
from pymavlink.dialects.v20 import ardupilotmega, common

from hilsim.protocols.mavlink.messages import LAYOUTS


def packer(system=1, component=200, dialect=common):
    return dialect.MAVLink(None, srcSystem=system, srcComponent=component)


def signing_packer():
    mav = packer()
    mav.signing.secret_key = bytes(range(32))
    mav.signing.sign_outgoing = True
    mav.signing.link_id = 3
    mav.signing.timestamp = 123456789
    return mav


def theirs(message, record):
    """The message of pymavlink with the values of a record."""
    kind = common.mavlink_map[message.id]
    values = {}
    for name, field_type in zip(kind.fieldnames, kind.fieldtypes, strict=True):
        value = record[name]
        values[name] = value.tobytes() if field_type == "char" else value.tolist()
    return kind(**values)


def heartbeat_bytes(mav=None, mode=113):
    return common.MAVLink_heartbeat_message(2, 12, mode, 0, 4, 3).pack(mav or packer())


def hil_sensor_bytes(mav=None, time_usec=7):
    return common.MAVLink_hil_sensor_message(time_usec, *np.linspace(0.5, 2.0, 13).tolist(), 0x1FFF, 0).pack(mav or packer())


def unknown_bytes(mav=None):
    """A message of ArduPilot's own, which the set ``common`` does not have."""
    return ardupilotmega.MAVLink_ahrs_message(0.5, 0.25, 0.125, 1.0, 0.75, 0.1, 0.2).pack(mav or packer(dialect=ardupilotmega))


def mixture():
    """Frames of every kind a link carries, each its own bytes."""
    old = common.MAVLink_heartbeat_message(2, 12, 113, 0, 4, 3).pack(packer(), force_mavlink1=True)
    longest = common.MAVLink_file_transfer_protocol_message(0, 1, 1, [1 + each % 200 for each in range(251)]).pack(packer())
    return [old, hil_sensor_bytes(), unknown_bytes(), hil_sensor_bytes(signing_packer()), longest, heartbeat_bytes()]


_NUMBERS = {
    "u": lambda size: st.one_of(st.just(0), st.integers(0, 256**size - 1)),
    "i": lambda size: st.one_of(st.just(0), st.integers(-(256**size) // 2, 256**size // 2 - 1)),
    "f": lambda size: st.one_of(st.just(0.0), st.floats(width=8 * size)),
}


def records(message):
    """Strategy: any record of a message; many fields are 0, so that frames are truncated at every length."""

    def fill(numbers):
        record = np.zeros(1, LAYOUTS[message])
        for name, values in zip(record.dtype.names, numbers, strict=True):
            record[name][0] = values
        return record

    fields = []
    for name in LAYOUTS[message].names:
        layout = LAYOUTS[message][name]
        number = _NUMBERS[layout.base.kind](layout.base.itemsize)
        fields.append(st.lists(number, min_size=layout.shape[0], max_size=layout.shape[0]) if layout.shape else number)
    return st.tuples(*fields).map(fill)
