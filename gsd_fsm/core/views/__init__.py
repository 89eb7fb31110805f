"""Files that show the state of a loop."""
