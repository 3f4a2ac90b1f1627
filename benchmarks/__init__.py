"""What it costs: `make bench`, and the measurements of sessions that are run by hand."""
