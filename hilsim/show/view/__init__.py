"""The live view in the browser: a process of its own that follows a daemon, a capture or a UDP port."""
