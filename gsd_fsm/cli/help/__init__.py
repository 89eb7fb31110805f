"""Help, examples, aliases and completion of commands."""
