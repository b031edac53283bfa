"""What ``import hilsim`` gives, one file a thing (docs/reference/python-api.md says which names are a promise)."""
