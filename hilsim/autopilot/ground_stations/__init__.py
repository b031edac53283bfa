"""Ground stations: the endpoints that they connect to, and what is forwarded both ways."""
