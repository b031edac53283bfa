"""Serial, TCP and UDP links, and how much they carry."""
