"""Control interfaces of the rig's Hesai lidars: PTC and HTTP."""
