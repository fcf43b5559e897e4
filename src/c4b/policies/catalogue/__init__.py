"""Which policies there are, what each consists of and promises, by name and in words."""
