"""The style sheet of the page: system fonts, light or dark as set in the reader's system."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1c2128; --quiet: #5d6673; --line: #dfe3e8;
  --good: #00694d; --bad: #b3400a; --warn: #8a5a00; --info: #005a8c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2228; --ink: #e4e7eb; --quiet: #9aa4b1; --line: #333a43;
    --good: #3fc79a; --bad: #ff8a4f; --warn: #f0b23e; --info: #6cbcf0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 1100px;
  background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 3rem 0 .75rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
h3 { font-size: .95rem; margin: 1.25rem 0 .25rem; }
code, pre { font: .9em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.command { margin: .25rem 0; overflow-wrap: anywhere; }
.head, .note { color: var(--quiet); }
.note { margin: .25rem 0 .75rem; font-size: .9rem; }
.badge {
  display: inline-block; margin-right: .5rem; padding: .05rem .7rem; border-radius: 1rem;
  border: 1px solid currentColor; font-weight: 600; color: var(--info);
}
.badge.done { color: var(--good); }
.badge.failed, .badge.killed { color: var(--bad); }
.badge.interrupted { color: var(--warn); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: .75rem; margin: 1.5rem 0; }
.tiles div { background: var(--card); border-radius: 8px; padding: .8rem 1rem; }
.tiles dd { margin: 0; font-size: 1.45rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tiles dt { color: var(--quiet); font-size: .88rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 0 2.5rem; align-items: start; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
td:first-child, th:first-child { padding-left: 0; }
td:last-child, th:last-child { padding-right: 0; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.long { overflow-wrap: anywhere; min-width: 12rem; color: var(--quiet); }
.facts th { font-weight: 400; color: var(--quiet); white-space: nowrap; }
.facts td { text-align: right; color: var(--ink); font-variant-numeric: tabular-nums; }
.facts td.long { text-align: left; }
.scroll { overflow-x: auto; margin: .5rem 0 1.5rem; }
.far-off { color: var(--bad); }
td.share { width: 40%; vertical-align: middle; }
div.share { background: var(--card); border-radius: 4px; overflow: hidden; }
div.share div { height: .8rem; background: #0072B2; }
.failure { border-left: 4px solid var(--bad); background: var(--card); padding: .75rem 1rem; margin: .75rem 0; border-radius: 0 8px 8px 0; }
.failure .message { margin: 0; font-weight: 600; white-space: pre-wrap; overflow-wrap: anywhere; }
.failure .note { margin: .1rem 0; }
summary { cursor: pointer; color: var(--quiet); }
pre { overflow-x: auto; margin: .5rem 0 0; }
footer { margin-top: 3rem; color: var(--quiet); font-size: .85rem; }
.plot .main-svg text { fill: var(--ink) !important; }
.plot .main-svg .hoverlayer text { fill: #ffffff !important; }
.plot .xgrid, .plot .ygrid { stroke: var(--line) !important; stroke-opacity: 1 !important; }
"""
