"""Analysis of packet streams: inspection, conformance checks, comparison of two streams, pictures."""
