"""Web interfaces of sensors as a part of the running rig."""
