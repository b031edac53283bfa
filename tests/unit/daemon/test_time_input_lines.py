"""What a GPS input does with sentences that a sensor cannot use."""

import time
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from hilsim.config.tables.sensor import TimeInputSpec
from hilsim.daemon.time_inputs import part
from hilsim.daemon.time_inputs.part import SensorInput

UNUSED = b"$GNRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*74\r\n"


@pytest.mark.asyncio
async def test_a_time_sentence_that_cannot_be_used_is_logged_once_and_others_are_not(monkeypatch):
    async def lines(_sensor, _spec):
        for line in (b"$GNGSA,A,3*1F\r\n", UNUSED, UNUSED, b"noise\n"):
            yield line

    monkeypatch.setattr(part, "receive_lines", lines)
    context = SimpleNamespace(clock=SimpleNamespace(utc_epoch_ns=0, epoch_ns=time.monotonic_ns()))
    with capture_logs() as logs:
        await SensorInput(context, SimpleNamespace(name="top"), TimeInputSpec(nmea="udp:127.0.0.1:5000"))._hear()
    assert [(each["event"], each["sensor"], each["sentence"]) for each in logs] == [("time_input.not_used", "top", UNUSED.decode().strip())]
