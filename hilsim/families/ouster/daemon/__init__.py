"""Control interfaces of the rig's Ousters: HTTP, commands at a TCP port, and discovery by mDNS."""
