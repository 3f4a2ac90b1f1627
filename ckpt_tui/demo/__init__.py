"""The demo: a real checkpoint in as many copies as there are ranks, one deliberate fault, and real rank processes."""
