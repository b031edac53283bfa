"""Range sensors with a serial interface of their own; none knows a clock or a port."""
