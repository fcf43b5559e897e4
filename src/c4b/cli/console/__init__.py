"""What commands print: tables, lines and progress, JSON, errors in the words of the shell."""
