"""Edges from arrays, tables and files, as columns of ids.

A file is read by what the end of its name says (`detect.ENDINGS`), or as `format=` says:

- `edges`: a line for each edge, fields separated by white space or commas: source, target and, if
  there are three or more, the weight. Lines that begin with `#` or `%` are comments. All lines have
  as many fields as the first. Any name that no other format has.
- `adjacency` (.adj, .adjlist, and the `*-input` files of LDBC): a line for each vertex, its id and
  those of its neighbours. An undirected edge may be in both of its lines, and is one edge.
- `ldbc` (.e): edges as above, and beside them a file `.v` with all vertices, one a line.
- `csv`, `tsv`: tables with quotes; `parquet`, `arrow` (.feather, too): typed tables. Columns named
  source and target (src, dst, from, to) are the ends, else the first two; weight, or a third
  column of numbers, is the weight.

Text may be packed with gzip or zstd. A first line of text that does not look like the next one, or
that names a source and a target, is a header.
"""
