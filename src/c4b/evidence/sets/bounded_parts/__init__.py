"""What the set ``bounded`` is made of: its constants, its statistics, its weights, its radius."""
