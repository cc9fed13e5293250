"""One model, many workers: built-in models, and later the rhythms of training together."""
