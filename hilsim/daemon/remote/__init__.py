"""Control of a running daemon by other programs: HTTP and WebSocket, events, and the bounds on both."""
