"""Take over running loops from the files of other tools."""
