"""A scripted flight controller, the far end of the MAVLink cable: strict where PX4 fails, and able to fly.

``controller.Px4`` is the whole of it, without input or output: bytes with their arrival times go in, bytes come out. ``px4`` runs it on a serial line or a TCP connection,
``station`` is a ground station, which ``ground`` runs.
``bridge`` is a small bridge of the tests' own, ``wrongs`` what makes it wrong in one way at a time, ``cable`` and ``desk`` join both ends in virtual and in real time.
It shares no code with ``hilsim`` but the vehicle that is flown.
"""
