"""Products, factors and inverses, and the rounding errors they carry."""
