"""Editing of a rig's scene: objects are placed, moved and removed as timed changes, undone and redone, and saved into the rig's file."""
