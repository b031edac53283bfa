"""Control interface of an Ouster: its settings, its state, and requests by HTTP and TCP, without a socket or a clock."""
