"""What several tests need: real checkpoints, real processes, conditions to wait on."""
