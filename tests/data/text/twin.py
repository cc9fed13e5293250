"""A slow and obvious implementation of vocabulary, ids and co-occurrence, for comparison."""

import re
import unicodedata
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np

MAX_WORD_BYTES = 1000
OUTSIDE, LINE_END, FILE_END = -1, -2, -3


def _is_of_a_word(character):
    return unicodedata.category(character)[0] in "LMN"


def words(line):
    spaced = "".join(character if _is_of_a_word(character) else " " for character in line)
    return [word.lower() for word in spaced.split(" ") if word]


def letters(line):
    return [word.lower() for word in re.findall("[A-Za-z]+", line)]


TOKENIZERS = {"words": words, "letters": letters, "whitespace": str.split}


def lines_of(text):
    return re.split("\r\n|\r|\n", text)


def tokens_by_line(text, tokenize):
    return [tokenize(line) for line in lines_of(text)]


def vocabulary(texts, tokenize, min_count):
    """Return (word, count) in descending order of count, then by word."""
    counts = Counter(
        word for text in texts for line in tokens_by_line(text, tokenize) for word in line
    )
    kept = [
        (word, count)
        for word, count in counts.items()
        if count >= min_count and len(word.encode()) <= MAX_WORD_BYTES
    ]
    return sorted(kept, key=lambda pair: (-pair[1], pair[0]))


def ids(texts, tokenize, known):
    """Return the stream of ids, with one mark for any number of adjacent line ends."""
    id_of = {word: index for index, word in enumerate(known)}
    stream = []
    for text in texts:
        for number, line in enumerate(tokens_by_line(text, tokenize)):
            stream += [LINE_END] if number else []
            stream += [id_of.get(word, OUTSIDE) for word in line]
        stream.append(FILE_END)
    return stream


def pairs(texts, tokenize, known, *, window, across_lines):
    """Return sums of 1/distance as fractions, in both directions, as GloVe's program counts."""
    id_of = {word: index for index, word in enumerate(known)}
    sums = defaultdict(Fraction)
    for text in texts:
        lines = tokens_by_line(text, tokenize)
        if across_lines:
            lines = [[word for line in lines for word in line]]
        for line in lines:
            here = [id_of[word] for word in line if word in id_of]
            for right, word in enumerate(here):
                for left in range(max(0, right - window), right):
                    sums[word, here[left]] += Fraction(1, right - left)
                    sums[here[left], word] += Fraction(1, right - left)
    return {pair: np.float32(float(total)) for pair, total in sums.items()}
