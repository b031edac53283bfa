"""A sensor that clients control: requests one after the other, what packets refuse, settings that are kept, and starts."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from hilsim.daemon.interfaces.controlled import ControlledSensor
from hilsim.errors import ConfigError


@dataclass(frozen=True)
class Lamp:
    shown: int = 0
    kept: int = 0


class Followed:
    """Packets that cannot be 13."""

    def __init__(self):
        self.log, self.seen = [], asyncio.Event()
        self.seen.set()

    async def follow(self, former, state):
        await self.seen.wait()
        if state.shown == 13:
            raise ConfigError("it must not be 13")
        self.log.append((former.shown, state.shown))

    async def save(self, state):
        self.log.append(f"saved {state.kept}")

    async def saved(self, state):
        return replace(state, shown=5)

    def present(self, state):
        return state

    def restore(self):
        return Lamp(1, 1)

    def conditions(self):
        return 100

    def answers(self):
        return True


class Sensor(ControlledSensor):
    family = "lamp"


def setting(shown, kept=0):
    return lambda state, now: (replace(state, shown=shown, kept=kept), f"{now}: {state.shown} to {shown}")


def run(script):
    packets = Followed()
    return asyncio.run(script(Sensor("left", Lamp(), packets, boot_s=0.01), packets)), packets.log


def test_what_changes_waits_for_what_changes_and_what_reads_does_not():
    async def script(sensor, packets):
        packets.seen.clear()
        first, second = (asyncio.create_task(sensor.execute(setting(number), str)) for number in (1, 2))
        await asyncio.sleep(0)
        read = await sensor.execute(lambda state, now: (state, f"{now}: {state.shown}"), str)
        packets.seen.set()
        return read, await first, await second

    assert run(script) == (("100: 0", "100: 0 to 1", "100: 1 to 2"), [(0, 1), (1, 2)])


def test_what_packets_refuse_changes_nothing_and_leaves_what_was_saved():
    async def script(sensor, _):
        answer = await sensor.execute(setting(13, kept=13), lambda reason: f"no: {reason}")
        return answer, sensor.state

    assert run(script) == (("no: it must not be 13", Lamp()), ["saved 13", "saved 0"])


def test_saved_settings_are_taken_over_and_a_reload_undoes_them():
    async def script(sensor, _):
        await sensor.load_saved()
        before = sensor.state
        sensor.restore()
        return before, sensor.state

    assert run(script) == ((Lamp(5), Lamp(1, 1)), [(0, 5)])


@pytest.mark.parametrize(("is_closed", "shown"), [(False, 9), (True, 0)])
def test_a_start_ends_with_another_state_unless_it_is_ended(is_closed, shown):
    async def script(sensor, _):
        await sensor._boot(lambda state: replace(state, shown=9))
        if is_closed:
            await sensor.close()
        await asyncio.sleep(0.05)
        return sensor.state.shown

    assert run(script)[0] == shown
