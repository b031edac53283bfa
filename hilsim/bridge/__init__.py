"""The flight controller's link: MAVLink frames and messages, serial port, TCP and UDP, forwarding to ground stations."""
