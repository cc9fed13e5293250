"""Building a graph: ids to vertex numbers, edges grouped by source and by target."""
