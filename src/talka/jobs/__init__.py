"""Complete jobs built from the pillars: each predicts its cost, runs, and measures its cost."""
