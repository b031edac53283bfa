"""Rings, the sending loop, sockets and scheduling."""
