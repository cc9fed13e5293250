"""How edges become rows: ids to vertex numbers, edges grouped by source and by target."""
