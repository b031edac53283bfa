"""Views, and files and streams for other programs."""
