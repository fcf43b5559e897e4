"""The compiled round: assess every candidate, choose, charge. Online and simulation run it."""
