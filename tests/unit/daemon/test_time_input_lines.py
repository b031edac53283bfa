"""What a GPS input does with sentences that a sensor cannot use."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from hilsim.config.rig import rig_of_table
from hilsim.config.tables.sensor import TimeInputSpec
from hilsim.daemon.parts import RigClock, RigContext
from hilsim.daemon.streaming.change_queue import ChangeQueue
from hilsim.daemon.time_inputs import part
from hilsim.daemon.time_inputs.part import SensorInput
from tests.unit.sensor.test_time_input import PULSE_NS, SECOND_NS, UTC_S, sentences

UNUSED = b"$GNRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*74\r\n"


@pytest.mark.asyncio
async def test_a_time_sentence_that_cannot_be_used_is_logged_once_and_others_are_not(monkeypatch):
    async def lines(_sensor, _spec):
        for line in (b"$GNGSA,A,3*1F\r\n", UNUSED, UNUSED, b"noise\n"):
            yield line

    monkeypatch.setattr(part, "receive_lines", lines)
    with capture_logs() as logs:
        await SensorInput(None, RigClock(time.monotonic_ns()), SimpleNamespace(name="top"), TimeInputSpec(nmea="udp:127.0.0.1:5000"))._hear()
    assert [(each["event"], each["sensor"], each["sentence"]) for each in logs] == [("time_input.not_used", "top", UNUSED.decode().strip())]


@pytest.mark.asyncio
async def test_sentences_are_of_the_day_of_rig_time_0_which_is_known_when_packets_flow(monkeypatch):
    async def lines(_sensor, _spec):
        await asyncio.Event().wait()
        yield b""

    monkeypatch.setattr(part, "receive_lines", lines)
    rig = rig_of_table({"name": "bench", "sensor": [{"name": "top", "time_input": {"nmea": "udp:127.0.0.1:5000"}}]}, Path("rig.toml"))
    inputs, queue = part.TimeInputs(RigContext(rig=rig)), ChangeQueue(None)
    async with inputs.serve(queue):
        await asyncio.sleep(0)
        assert inputs.heard("top") is None
        queue.begin(RigClock(time.monotonic_ns(), UTC_S * SECOND_NS))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        found = sentences(inputs.heard("top"), 3)
    assert found[-1].utc_epoch_ns == (UTC_S + 1) * SECOND_NS - PULSE_NS
