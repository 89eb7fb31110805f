"""Settings of the user and the project, and who is calling."""
