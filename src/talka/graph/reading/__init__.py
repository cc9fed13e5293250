"""Reading edges from arrays, tables and files, as columns of ids.

The ending of its name decides how a file is read (`detect.ENDINGS`), unless `format=` is given:

- `edges`: one line per edge, with fields separated by white space or commas: source, target and, if
  there are three or more fields, the weight. Lines that begin with `#` or `%` are comments. All
  lines have as many fields as the first. Used for all names without a known ending. A first line
  `vertices edges` is skipped if it cannot be an edge. If it could be either, the file is rejected
  unless `format="edges"` is given (it is an edge) or the line begins with `#` (it is not).
- `mtx` (.mtx, or the banner `%%MatrixMarket`): coordinate matrices, pattern, real or integer; a
  symmetric one has edges in both directions. Ids are row numbers, from 1.
- `metis` (.metis, .graph): line v has the neighbours of vertex v, from 1.
- `adjacency` (.adj, .adjlist, and the `*-input` files of LDBC): one line per vertex with its id and
  those of its neighbours. An undirected edge may be in both of its lines, and is one edge.
- `ldbc` (.e): edges as above, with a second file `.v` of all vertices, one per line.
- `csv`, `tsv`: tables with quotes; `parquet`, `arrow` (also .feather): typed tables. Columns named
  source and target (src, dst, from, to) are the ends, and one named weight (w, value, cost,
  distance, ...) is the weight. Without such names the first two columns are the ends (row numbers
  of pandas are skipped), and a third column of numbers is the weight unless its name is that of a
  time.

Text may be compressed with gzip or zstd. A first line of text that does not look like the next
one, or that names a source and a target, is a header; its names have the same meaning as in tables.
Lines end with LF, CR LF or CR and have at most a megabyte, or 256 megabytes in lists of neighbours.
"""
