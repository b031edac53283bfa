"""Compilation of a vehicle's kernels ahead."""

from hilsim.compilation.jit import compile_for
from hilsim.parts.vehicle.autopilot.loop import fly_step
from hilsim.parts.vehicle.autopilot.loop_setup import build_loop_setup, open_line
from hilsim.parts.vehicle.autopilot.receive import receive_frames
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.parts.vehicle.physics.surroundings import look_around
from hilsim.parts.vehicle.specs import VehicleRigSpec
from hilsim.world.scene.world import build_world


def compile_flight(profile: VehicleSpec) -> None:
    """Compile a vehicle's steps, its controller's messages, and the search for obstacles."""
    setup = build_loop_setup(VehicleRigSpec(), profile, open_line("hold"), seed=0, rate_hz=250)
    flight = setup.flight
    compile_for(fly_step, setup.context, flight, setup.shared, 0)
    compile_for(receive_frames, setup.context, flight, setup.shared, setup.buffers, 0, 0)
    compile_for(look_around, build_world([]), setup.context.multirotor, flight.state, 0, flight.around)
