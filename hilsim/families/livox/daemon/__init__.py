"""Control interfaces of the rig's Livox lidars: discovery, commands and push messages by UDP."""
