"""The parts of an audit that compare the journal with what is computed again."""
