"""Independent computations of every formula, for audits. They share no code with the deciding modules."""
