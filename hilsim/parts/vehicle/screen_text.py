"""What the terminal shows of a vehicle."""

import click

from hilsim.parts.vehicle.reading import VehicleReading
from hilsim.parts.vehicle.specs import VehicleRigSpec


def vehicle_summary(spec: VehicleRigSpec) -> str:
    """Profile, controller and ground stations of the vehicle."""
    controller = spec.controller
    host, port = controller.endpoint
    steered = {
        "hold": "flies by itself",
        "serial": f"flight controller on {controller.port}",
        "tcp": f"flight controller connects to {host}:{port} (TCP)",
        "udp": f"flight controller at {host}:{port} (UDP)",
        "ardupilot": f"ArduPilot's simulation sends to {host}:{port} (UDP)",
    }
    stations = [f"ground station {'at' if station.kind == 'udp' else 'connects to'} {station.address}" for station in spec.ground_station]
    return ", ".join([f"{spec.profile} {steered[controller.kind]}", *stations])


def vehicle_state(vehicle: VehicleReading) -> str:
    """State of the session with the controller, and height of the vehicle."""
    words = {
        "": "vehicle",
        "unplugged": "no link",
        "calling": "link open, no heartbeat yet",
        "refused": "refused: no HIL flag",
        "flying": "controller",
        "silent": "controller silent, vehicle held",
    }
    if vehicle.is_crashed:
        return click.style("vehicle crashed", fg="red")
    text = f"{words[vehicle.state]}{' armed' if vehicle.is_armed else ''}"
    if vehicle.state not in ("", "flying"):
        return click.style(text, fg="yellow")
    text = f"{text} {vehicle.height_m:.1f} m"
    if vehicle.is_touching:
        text += click.style(" touching", fg="yellow")
    return text if vehicle.state == "" else f"{text}, {_autopilot_state(vehicle)}"


def _autopilot_state(vehicle: VehicleReading) -> str:
    """Readiness to arm, flags of the estimator, and last warning of the controller."""
    flags = "" if vehicle.estimator_flags is None else f" (flags 0x{vehicle.estimator_flags:03x})"
    warned = f", last warning: {vehicle.warning}" if vehicle.warning else ""
    ready = click.style("ready to arm", fg="green") if vehicle.is_ready else f"not ready to arm: {vehicle.obstacle}"
    return f"{'' if vehicle.is_armed else ready}{flags}{warned}".strip(" ,")
