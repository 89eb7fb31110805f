"""Running loops of other tools, taken over as they stand."""
