"""Access control: tokens in the store, and the check of every request."""
