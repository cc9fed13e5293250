"""The engine of one machine: its threads, its worker processes and the channels between them."""
