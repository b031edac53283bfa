"""Ground stations: their endpoints, and forwarding between them and the flight controller."""
