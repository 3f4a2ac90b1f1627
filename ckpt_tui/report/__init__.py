"""A scan or an agreement as JSON or as text for people. Pure, but for `write`, the one module that writes files."""
