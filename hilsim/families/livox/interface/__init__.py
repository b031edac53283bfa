"""Control interface of a Livox: its keys, its state and its work states, and requests, without a socket or a clock."""
