"""Control of a running daemon: one table of requests, and the listeners that carry them (HTTP and WebSocket, Unix socket, UDP)."""
