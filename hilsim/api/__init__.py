"""What ``import hilsim`` gives: rigs, packets and points in Python, without a daemon or beside one. Its names are those of ``hilsim`` itself."""
