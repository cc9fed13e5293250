"""Message channels between the ranks of a gang."""
