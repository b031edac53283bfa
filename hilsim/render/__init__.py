"""What a ray meets."""
