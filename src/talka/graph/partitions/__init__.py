"""How a graph is cut into partitions, and where they are placed."""
