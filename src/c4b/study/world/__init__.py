"""What a study draws: candidates, noise, history."""
