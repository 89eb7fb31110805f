"""Print what a command shows: as plain text, or with `rich` where a person reads it at a terminal."""
