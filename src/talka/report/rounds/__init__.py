"""Rounds of training: which worker the others waited for, and a timeline of a few rounds."""
