"""What makes the generated pages of the documentation; no part of the distribution."""
