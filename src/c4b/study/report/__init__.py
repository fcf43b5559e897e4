"""A study for people: tables, figures, one page."""
