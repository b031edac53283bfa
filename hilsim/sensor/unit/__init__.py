"""What makes a unit of a model different from all others: its encoder, its lasers, its clock; drawn by chance or learned from a capture."""
