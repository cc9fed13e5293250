"""The commands of `talka`, one file each."""
