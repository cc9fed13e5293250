"""What a user writes, and how it becomes compiled code."""
