"""Text for people and models."""
