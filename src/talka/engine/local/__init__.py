"""The engine of one machine: threads, worker processes, and the frames between them."""
