"""The daemon: a running rig, its start, its changes and its end."""
