"""Import running loops from files of other tools."""
