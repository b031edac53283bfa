"""Recognition and changes of packets of a kind."""

import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.emulator.retime import Retiming
from hilsim.families.cepton.protocol.info import encode_info_packet
from hilsim.protocols.recognise import recognise
from hilsim.replay.tracks import Track
from tests.unit.replay.streams import stdv_packet

INFO = encode_info_packet(
    model=3, serial=1, firmware=(1, 0, 0, 0), model_name="m", part_number=0, power_up_us=0, sync_offset_us=9, returns=1
).tobytes()


@pytest.mark.parametrize(
    ("payload", "retiming"),
    [
        (INFO, Retiming.CEPTON_INFO),
        (INFO[:5] + b"\x10" + INFO[6:], Retiming.NOTHING),  # another layout
        (INFO[:80], Retiming.NOTHING),
        (stdv_packet(1), Retiming.CEPTON_STDV),
        (b"STDT" + bytes(1042), Retiming.NOTHING),
    ],
)
def test_only_what_is_understood_is_rewritten(payload, retiming):
    first = CapturedDatagram(0, "192.168.1.31", 8808, "192.168.1.77", 8808, payload, None, is_ethernet=False, frame=1)
    assert Track(recorded=first.flow, kind=recognise(payload), first=first).retiming is retiming
