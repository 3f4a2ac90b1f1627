"""Worked examples. Each is one file that runs as it stands."""
