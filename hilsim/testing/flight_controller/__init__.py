"""A scripted flight controller, the far end of the MAVLink cable: strict where PX4 fails, and able to fly.

``process.FlightController`` is what users have: it runs ``python -m hilsim.testing.flight_controller`` as a child process.
There, ``program`` gives ``controller.Px4`` a line (``lines``: a pty, a serial device, TCP, UDP) and real time.
``controller.Px4`` is the whole of it, without input or output: bytes with their arrival times go in, bytes come out.
It shares no code with hilsim but the errors, so that it judges hilsim as it judges any other simulator.
"""
