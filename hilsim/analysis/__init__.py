"""What a stream of packets holds: what it is, whether it is right, how it differs, how it looks."""
