"""Figures of a page: the JSON that plotly.js draws, its script, and series short enough to draw."""
