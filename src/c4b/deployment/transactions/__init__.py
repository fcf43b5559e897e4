"""What one call changes and writes: the state, the commands on it, the entries, the commit."""
