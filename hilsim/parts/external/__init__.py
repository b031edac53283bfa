"""Poses from another simulator: the messages in which they arrive, and how they become keys of the platform and of objects."""
