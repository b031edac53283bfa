"""One sensor behind an interface of its own: what it is now, and what its clients may change while packets flow."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hilsim.assembly.build import flow_framing, network_stack, sensor_flows
from hilsim.config.tables.sensor import SensorSpec, SensorWebSpec
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import Changes, RigContext
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import ConfigError, HilsimError
from hilsim.faults.catalogue import BROWN_OUT, Effect
from hilsim.sensor.time_input import TimeInput
from hilsim.transmit.specs import SocketSpec


class ServedSensor:
    """A sensor of a running rig. Packets may not flow yet.

    Attributes:
        context: The rig.
        changes: Its timed changes, and its clock.
        spec: Table of the sensor in the rig.
        web: Its table ``[sensor.web]``.
        setting: Setting of the sensor as the rig has it.
        saved_file: File of saved settings; None without one.
        is_up: Whether it has started since it had power again.
    """

    def __init__(
        self, context: RigContext, number: int, web: SensorWebSpec, flows: Flows, changes: Changes, heard: Callable[[str], TimeInput | None]
    ) -> None:
        """Take a sensor of the rig by its place; ``heard`` is ``TimeInputs.heard``."""
        self.context, self.changes, self.web = context, changes, web
        self.spec: SensorSpec = context.rig.spec.sensor[number]
        self.setting = context.rig.lidars[number]
        self.saved_file = context.rig.directory / web.saved_file if web.saved_file else None
        self.is_up = True
        self._flows, self._heard, self._sends = flows, heard, sensor_flows(self.spec, self.setting)

    @property
    def lidar(self) -> LidarEmulator:
        """The sensor as it is now."""
        return self.changes.lidar(self.spec.name)[0]

    @property
    def fires(self) -> bool:
        """Whether its lasers fire now."""
        return self.changes.lidar(self.spec.name)[1]

    @property
    def has_power(self) -> bool:
        """Whether no fault on command has taken its power."""
        now_ns = self.changes.clock.now_ns()
        failures = [fault for fault in self.lidar.setting.faults if fault.kind == BROWN_OUT and now_ns < fault.end_ns]
        return not any(0 <= now_ns - fault.begin_ns < 1e6 * getattr(fault, "down_ms", 0.0) for fault in failures)

    @property
    def answers(self) -> bool:
        """Whether it answers requests."""
        return self.is_up and self.has_power

    def follows_time(self, rig_ns: int) -> bool:
        """Whether its clock follows what gives it the time: no fault on command has taken that."""
        lost = (fault for fault in self.lidar.setting.faults if fault.row.effect == Effect.MASTER)
        return bool(self.lidar.plan.clock.follows_pulse) and not any(fault.begin_ns <= rig_ns < fault.end_ns for fault in lost)

    @property
    def time_input(self) -> TimeInput | None:
        """Its GPS input; None without one, or before packets flow."""
        return self._heard(self.spec.name)

    def silence(self, *, data: bool, others: bool) -> None:
        """Count data packets, and the others, in place of sending them, from the next one on, or send them again."""
        rows = self._flows.rows
        for of, silent in zip(self._sends, (data, others), strict=True):
            self._flows.transmitter.silence_flow(rows[of.flow.name], silent=silent)

    def redirect(self, address: str, ports: Sequence[int], *, key: str) -> None:
        """Send packets to another destination from the next one on.

        Args:
            address: IPv4 address of the destination.
            ports: Ports of the destination for data packets and for the others; 0: unchanged.
            key: Name of the setting, for errors.

        Raises:
            ConfigError: ``sensor.web.destinations`` does not permit it, the sensor sends whole frames, or a socket cannot be opened; the destinations are
                as they were.
        """
        transmitter, rows, retargets = self._flows.transmitter, self._flows.rows, []
        if address != self._sends.data.flow.destination and not self.web.permits(address):
            raise ConfigError(f"{key} must be in {' or '.join(self.web.destinations)} (sensor.web.destinations of the rig), got {address}")
        for of, port in zip(self._sends, ports, strict=True):
            row = rows[of.flow.name]
            former = transmitter.flows[row]
            if not isinstance(former.socket, SocketSpec):
                raise ConfigError(f'{key} must not be changed in mode "ethernet", whose frames contain the destination')
            if port and (former.socket.destination, former.socket.destination_port) != (address, port):
                retargets.append((row, former, former.socket, of._replace(flow=replace(of.flow, destination=address, destination_port=port))))
        try:
            specs = [
                replace(former, socket=replace(socket, destination=address, destination_port=of.flow.destination_port))
                for _, former, socket, of in retargets
            ]
            with transmitter.reserved(specs, [former for _, former, _, _ in retargets]):
                for (row, _, _, of), spec in zip(retargets, specs, strict=True):
                    framing, stack = flow_framing(of, self.spec, self.setting), network_stack(self.spec, self.setting)
                    self._flows.retarget(row, spec, framing, stack)
        except (HilsimError, ValueError) as error:
            raise ConfigError(f"{key} must be a destination that packets can be sent to, got {address}: {error}") from error
