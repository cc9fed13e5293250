"""Built-in models, one folder each."""
