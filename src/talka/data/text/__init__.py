"""Text to word ids and co-occurrence counts.

`scan_corpus` reads text once into a `Corpus` (vocabulary and ids), `count_pairs` turns that into
`PairBlocks`; `save_counted` and `load_counted` store both between runs.
"""

from talka.data.text.cooccurrence import PairOptions, count_pairs
from talka.data.text.corpus import Corpus, Tokenizer, scan_corpus
from talka.data.text.pair_blocks import PAIR, PairBlocks
from talka.data.text.reading import Chunk, TextReader
from talka.data.text.resources import Advance, Resources
from talka.data.text.sample import TextSample
from talka.data.text.saved import Counted, load_counted, save_counted
from talka.data.text.tokens import TOKENIZERS
from talka.data.text.vocabulary import Vocabulary
from talka.data.text.word_kernels import FILE_END, LINE_END, OUTSIDE

__all__ = [
    "FILE_END",
    "LINE_END",
    "OUTSIDE",
    "PAIR",
    "TOKENIZERS",
    "Advance",
    "Chunk",
    "Corpus",
    "Counted",
    "PairBlocks",
    "PairOptions",
    "Resources",
    "TextReader",
    "TextSample",
    "Tokenizer",
    "Vocabulary",
    "count_pairs",
    "load_counted",
    "save_counted",
    "scan_corpus",
]
