"""What people ask first, kept up to date with every entry."""
