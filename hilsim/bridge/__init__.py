"""What an autopilot is connected to: MAVLink frames and messages, its links and ground stations, and the range sensors that its own drivers read."""
