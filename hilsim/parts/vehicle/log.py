"""Log events of a vehicle: its session, its contacts, silences of its controller, and its readiness to arm."""

import structlog

from hilsim.parts.vehicle.autopilot.session import COMMAND_SILENT_NS, Reason, SessionState, SessionWord
from hilsim.parts.vehicle.flying import FlyingVehicle
from hilsim.parts.vehicle.physics.touching import Touching, TouchWord

log = structlog.get_logger("hilsim")

_QUIET = (SessionState.FLYING, SessionState.CALLING)

_REPAIR = "restart the flight controller: when it comes back disarmed, the vehicle is undamaged again and back at its start"


class FlightLog:
    """Log of a vehicle, which reports each change once; ``look`` is called several times a second."""

    def __init__(self, vehicle: FlyingVehicle) -> None:
        self._vehicle = vehicle
        self._changes = vehicle.changes
        self._armed = self._crashed = self._touching = self._silent = self._ready = False
        self._contacts = 0
        self._trouble = ""

    def look(self) -> None:
        """Log all changes since the last call."""
        self._look_at_session()
        self._look_at_contacts()
        self._look_at_vehicle()
        self._look_at_autopilot()

    def _look_at_vehicle(self) -> None:
        vehicle = self._vehicle
        if vehicle.is_armed != self._armed:
            self._armed = vehicle.is_armed
            log.info("vehicle.armed" if self._armed else "vehicle.disarmed")
            if self._armed and self._crashed and vehicle.is_crashed:
                log.warning("vehicle.armed_in_vain", position_m=vehicle.position_m, advice=f"it has crashed and cannot fly; {_REPAIR}")
        if vehicle.is_crashed != self._crashed:
            self._crashed = vehicle.is_crashed
            if self._crashed:
                log.warning("vehicle.crashed", reason=vehicle.damage, position_m=vehicle.position_m, advice=_REPAIR)
        if vehicle.trouble != self._trouble:
            self._trouble = vehicle.trouble
            log.warning("link.datagram_refused", reason=self._trouble)

    def _look_at_session(self) -> None:
        vehicle = self._vehicle
        if vehicle.changes == self._changes:
            return
        self._changes = vehicle.changes
        state = vehicle.state
        tell = log.info if state in _QUIET else log.warning
        if vehicle.loop_setup.shared.session.word[SessionWord.REASON] in {Reason.LINK_LOST, Reason.REBOOT, Reason.RESTART}:
            vehicle.autopilot.forget()
        tell("session.changed", state=state.name.lower(), reason=vehicle.reason)
        silences = int(vehicle.loop_setup.shared.session.word[SessionWord.SILENCES])
        if state is SessionState.SILENT and not self._silent:
            self._silent = True
            log.warning("flight.controller_silent", silent_s=COMMAND_SILENT_NS * 1e-9, position_m=vehicle.position_m, silences=silences)
        elif state is SessionState.FLYING and self._silent:
            self._silent = False
            log.info("flight.controller_back", silences=silences)

    def _look_at_contacts(self) -> None:
        """Log contacts; each lasts half a second at least, so none begins and ends between two calls."""
        touch = self._vehicle.loop_setup.shared.touch
        count, kinds = int(touch.word[TouchWord.COUNT]), Touching(int(touch.word[TouchWord.KINDS]))
        fastest_mps, began_mps = (round(float(speed_mps), 2) for speed_mps in touch.closing_mps)
        if self._touching and (not kinds or count != self._contacts):
            duration_s = round(1e-9 * int(touch.word[TouchWord.LAST_NS] - touch.word[TouchWord.BEGAN_NS]), 3)
            log.info("vehicle.contact_ended", duration_s=duration_s, fastest_mps=fastest_mps, position_m=self._vehicle.position_m)
            self._touching = False
        if count != self._contacts:
            self._contacts = count
            self._touching = bool(kinds)
            log.warning("vehicle.contact_began", kinds=kind_names(kinds), closing_mps=began_mps, position_m=self._vehicle.position_m, contacts=count)

    def _look_at_autopilot(self) -> None:
        """Log readiness to arm for a disarmed, whole vehicle that touches only the ground and does not fall, and in flight the estimator's first fault."""
        vehicle, autopilot = self._vehicle, self._vehicle.autopilot
        in_flight = vehicle.is_armed or vehicle.is_falling or vehicle.loop_setup.shared.touch.word[TouchWord.KINDS] != 0
        ready = autopilot.is_ready
        if ready == self._ready or (ready and (in_flight or vehicle.is_crashed)):
            return
        self._ready = ready
        if ready:
            log.info(
                "flight.ready_to_arm",
                estimator_flags=f"0x{autopilot.estimator_flags or 0:03x}",
                has_home=autopilot.has_home,
                last_warning=autopilot.warning,
            )
        else:
            event = "flight.estimator_fault" if in_flight else "flight.not_ready_to_arm"
            log.warning(event, reason=autopilot.obstacle, last_warning=autopilot.warning)


def kind_names(kinds: Touching) -> str:
    """Text of kinds of contact: ``obstacle, moving``."""
    return ", ".join(kind.name.lower().replace("_", " ") for kind in Touching if kind in kinds and kind.name)
