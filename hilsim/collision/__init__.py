"""What a vehicle can run into: the surfaces around it, and its contacts with them."""
