"""What the checks of a loop depend on: frozen at `start`, compared at each check, accepted by a user."""
