"""What an example adds to hilsim."""

from pathlib import Path

SPINNER16 = Path(__file__).parent / "spinner16.toml"
LANTERN8 = Path(__file__).parent / "lantern8.toml"
