"""The state of a loop: what events say, what they change, and what may follow."""
