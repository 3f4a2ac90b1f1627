"""The background worker: a scan or a rank's session as a child process that writes statuses and reads commands."""
