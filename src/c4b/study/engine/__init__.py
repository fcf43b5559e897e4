"""Run a study: one episode, a chunk of episodes, a whole run on one machine or on a cluster."""
