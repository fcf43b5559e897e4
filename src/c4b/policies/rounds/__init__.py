"""What enters a decision and what comes out of it, as frozen values."""
