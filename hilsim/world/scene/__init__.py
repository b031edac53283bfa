"""The scene: objects, materials, meshes and the world's arrays."""
