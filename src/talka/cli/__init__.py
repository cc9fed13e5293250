"""What people type: one file per command; nothing imports this folder."""
