"""Know what programs read and start."""
