"""What travels between a worker and whoever watches it: typed JSON lines, and their reducer."""
