"""Text and tables: reading, counting and writing of the data that jobs work on."""
