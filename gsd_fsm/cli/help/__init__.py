"""Help, examples, other names of commands, and completion."""
