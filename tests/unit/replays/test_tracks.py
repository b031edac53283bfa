"""Recognition of what can be rewritten in packets."""

import pytest

from hilsim.emulator.replaying import retiming_of
from hilsim.emulator.retime import NOTHING
from hilsim.families.cepton.protocol.info import SYNC_OFFSET, encode_info_packet
from hilsim.protocols.recognise import recognise
from tests.unit.replays.streams import stdv_packet

INFO = encode_info_packet(
    model=3, serial=1, firmware=(1, 0, 0, 0), model_name="m", part_number=0, power_up_us=0, sync_offset_us=9, returns=1
).tobytes()


@pytest.mark.parametrize("payload", [INFO[:5] + b"\x10" + INFO[6:], INFO[:80], b"STDT" + bytes(1042), b"anything"])
def test_what_is_not_understood_is_not_rewritten(payload):
    assert retiming_of(recognise(payload), payload) == NOTHING


def test_what_is_understood_is_rewritten():
    assert retiming_of(recognise(INFO), INFO)._asdict() == NOTHING._asdict() | {"utc_offset_at": SYNC_OFFSET}
    points = stdv_packet(1)
    assert retiming_of(recognise(points), points).stamps == 1
