"""What makes the generated pages of the documentation and the kernels in a wheel; no part of the distribution."""
