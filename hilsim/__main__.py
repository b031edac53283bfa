"""``python -m hilsim``."""

from hilsim.cli import main

main()
