"""A figure of plotly.js: traces and a layout, as the JSON that `Plotly.newPlot` takes."""

import json
from collections.abc import Mapping
from typing import Any, Final

_CONFIG: Final = {"displayModeBar": False, "responsive": True}
_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class Figure:
    """One plot; attributes of traces and layout have the names of plotly.js."""

    def __init__(self, layout: Mapping[str, Any]) -> None:
        self._traces: list[dict[str, Any]] = []
        self._layout: dict[str, Any] = dict(layout)

    def update_layout(self, **attributes: Any) -> None:
        """Set attributes of the layout; nested ones are merged."""
        _merge(self._layout, attributes)

    def update_xaxes(self, **attributes: Any) -> None:
        """Set attributes of the horizontal axis."""
        self.update_layout(xaxis=attributes)

    def update_yaxes(self, **attributes: Any) -> None:
        """Set attributes of the vertical axis."""
        self.update_layout(yaxis=attributes)

    def add_bar(self, **attributes: Any) -> None:
        """Add bars; attributes that are None are left out."""
        self._add("bar", attributes)

    def add_scatter(self, **attributes: Any) -> None:
        """Add a curve or markers; attributes that are None are left out."""
        self._add("scatter", attributes)

    def as_html(self, name: str) -> str:
        """Return the plot as HTML without plotly's script, which the page includes once."""
        place = f"plot-{name}"
        arguments = ", ".join(
            _script_safe(value) for value in (place, self._traces, self._layout, _CONFIG)
        )
        style = f"height:{self._layout['height']}px; width:100%;"
        return (
            f'<div class="plot"><div id="{place}" class="plotly-graph-div" style="{style}"></div>'
            f"<script>Plotly.newPlot({arguments})</script></div>"
        )

    def _add(self, kind: str, attributes: Mapping[str, Any]) -> None:
        known = {name: value for name, value in attributes.items() if value is not None}
        self._traces.append({"type": kind, **known})


def _merge(target: dict[str, Any], attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            inner = target.setdefault(name, {})
            _merge(inner, value)
        else:
            target[name] = value


def _script_safe(value: Any) -> str:
    """Return JSON that can stand inside a script element: no text in it can end the element."""
    return json.dumps(value, allow_nan=False).translate(_ESCAPES)
