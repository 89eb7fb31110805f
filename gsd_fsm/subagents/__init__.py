"""Write the prompts of subagents, and read and show their reports."""
