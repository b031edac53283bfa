"""Tables of a rig, each a class of its keys with their rules."""
