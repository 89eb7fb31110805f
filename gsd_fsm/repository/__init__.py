"""What a loop does in a git repository: look, switch, commit, set checkpoints, go back to them."""
