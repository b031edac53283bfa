"""Page of the live view: points, scene and controls, drawn by viser."""
