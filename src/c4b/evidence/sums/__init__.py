"""What sums of rewards say by themselves."""
