"""What a deployment answers about itself and its past. Nothing here changes it."""
