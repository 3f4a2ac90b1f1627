"""The command line: one module a command. Parsing and printing, nothing else."""
