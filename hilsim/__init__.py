"""hilsim stands in for real lidars on a test bench."""

__version__ = "0.1.0"
