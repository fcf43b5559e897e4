"""Results of a study: on disk, as statistics, beside published numbers."""
