"""Models that come with the package, each in a folder of its own."""
