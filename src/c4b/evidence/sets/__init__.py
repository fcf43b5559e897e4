"""Confidence sets, one file each; ``table`` lists them."""
