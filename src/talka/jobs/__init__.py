"""Whole jobs built from the pillars: each says what it will cost, runs, and says what it did cost."""
