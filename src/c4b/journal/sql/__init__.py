"""Journals in SQLite and PostgreSQL."""
