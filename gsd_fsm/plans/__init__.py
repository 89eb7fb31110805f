"""Plans of phases: found, read, and checked before a loop follows one."""
