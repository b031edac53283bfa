"""Python API: rigs, packets and points, with or without a daemon. ``import hilsim`` gives all of its names."""
