"""Finish a phase: summary, roadmap, project state and final report."""
