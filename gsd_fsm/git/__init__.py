"""Run git: look at a repository, switch branches, commit, set checkpoints and go back to them."""
