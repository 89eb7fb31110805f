"""Find, read and validate the plans of phases."""
