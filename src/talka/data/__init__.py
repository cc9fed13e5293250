"""Tables and text: what a job reads, and how it is cut into work."""
