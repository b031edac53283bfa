"""The version of hilsim; the build reads it here."""

__version__ = "0.1.0"
