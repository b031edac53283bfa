"""What the tests of ``hilsim_flight_controller`` need at the other end of its cable.

``bridge`` is a small bridge of the tests' own, ``wrongs`` what makes it wrong in one way at a time; ``cable`` and ``desk`` join bridge and controller in virtual and in real time.
``puppet`` and ``aircraft`` are what the bridge moves. ``station`` is a ground station, which ``ground`` runs.
"""
