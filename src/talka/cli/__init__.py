"""The command line: one file per command in `commands`. Nothing imports this folder."""
