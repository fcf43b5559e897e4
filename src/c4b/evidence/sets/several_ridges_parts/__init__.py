"""What the set ``several-ridges`` consists of."""
