"""Range sensors with a serial interface; independent of clocks and ports."""
