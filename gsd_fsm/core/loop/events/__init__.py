"""The event types, one family a file: declarations, rules, and what each event changes."""
