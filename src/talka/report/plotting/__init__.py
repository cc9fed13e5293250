"""Plots of the page: figures as JSON for plotly.js, their common look, and thinned series."""
