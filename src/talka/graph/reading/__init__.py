"""Edges from arrays, tables and files, as columns of ids.

A file is read by what the end of its name says (`detect.ENDINGS`), or as `format=` says:

- `edges`: a line for each edge, fields separated by white space or commas: source, target and, if
  there are three or more, the weight. Lines that begin with `#` or `%` are comments. All lines have
  as many fields as the first. Any name that no other format has. A first line `vertices edges` is
  left out if it cannot be an edge; if it may be either, the file is refused until `format="edges"`
  says that it is one, or a `#` before it that it is not.
- `mtx` (.mtx, or the banner `%%MatrixMarket`): coordinate matrices, pattern, real or integer; a
  symmetric one has edges in both directions. Vertices are called by their numbers, from 1 on.
- `metis` (.metis, .graph): line v has the neighbours of vertex v, from 1 on.
- `adjacency` (.adj, .adjlist, and the `*-input` files of LDBC): a line for each vertex, its id and
  those of its neighbours. An undirected edge may be in both of its lines, and is one edge.
- `ldbc` (.e): edges as above, and beside them a file `.v` with all vertices, one a line.
- `csv`, `tsv`: tables with quotes; `parquet`, `arrow` (.feather, too): typed tables. Columns named
  source and target (src, dst, from, to) are the ends, and one named weight (w, value, cost,
  distance, ...) is the weight. Without such names the first two are the ends (row numbers of pandas
  are passed over), and a third one of numbers is the weight unless it is called a time.

Text may be packed with gzip or zstd. A first line of text that does not look like the next one, or
that names a source and a target, is a header; it names columns as those of tables. Lines end with
LF, CR LF or CR and have at most a megabyte, those of neighbours 256 megabytes.
"""
