"""Lidars that change at rig times: how they go on, and which firing is rendered as which of them."""
