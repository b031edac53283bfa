"""Control of a running daemon by other programs over HTTP and WebSocket, with events and limits."""
