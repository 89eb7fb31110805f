"""Find the files that the command of a check depends on."""
