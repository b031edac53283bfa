"""A scripted flight controller for the other end of a MAVLink link: it checks a simulator against PX4's requirements, and can fly.

Users start ``FlightController``, which runs ``python -m hilsim_flight_controller`` as a child process.
There, ``program`` connects ``controller.Px4`` to a line (``lines``: a pty, a serial device, TCP, UDP) and real time.
``controller.Px4`` is the complete controller without input or output: it takes bytes with their arrival times and returns bytes.
It shares no code with hilsim except the errors, so that it checks hilsim like any other simulator.
"""

from hilsim_flight_controller.flight_report import RULES, TIMING_RULES, Event, Fault, FlightReport
from hilsim_flight_controller.process import FlightController, FlightError

__all__ = ["RULES", "TIMING_RULES", "Event", "Fault", "FlightController", "FlightError", "FlightReport"]
