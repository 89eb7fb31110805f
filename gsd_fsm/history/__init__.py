"""Read models: replay, timeline, the state machine beside the fold, past failures."""
