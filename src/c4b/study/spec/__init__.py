"""A study as data: settings, methods, study files."""
