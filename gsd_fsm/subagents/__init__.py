"""What a subagent is told before it works on a task, and how what it reports is read and shown."""
