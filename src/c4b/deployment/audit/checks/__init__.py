"""What an audit compares with what was recorded."""
