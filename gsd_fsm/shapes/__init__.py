"""The shape of a goal, as people and agents write it down: criteria, must-nots, verification."""
