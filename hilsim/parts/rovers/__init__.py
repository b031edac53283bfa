"""The rovers of a rig."""
