"""Texts for tests: several scripts, unusual line ends and spaces; and helpers to count them."""

from hypothesis import strategies as st

from talka.data.text import Resources, TextReader, scan_corpus

LATIN = "a The the cat CAT dog's x1 2024 under_score e-mail antidisestablish ½ ²"
ACCENTED = "Straße ÉCOLE école e\u0301cole İstanbul DİYARBAKIR \u0131 ⱥȺ"
OTHER_SCRIPTS = (
    "ΟΔΟΣ οδός \u0391Σ'\u0391 Привет мир हिन्दी भाषा ไทย 日本語 。 中文 سلام 𐐀𐐨 🙂 \ufffd"
)
WORDS = [word for words in (LATIN, ACCENTED, OTHER_SCRIPTS) for word in words.split()]
ENDS = ["\n", "\r\n", "\r", "\n\n", "\n \n"]
SPACES = [" ", "  ", "\t", ", ", "-", "\u00a0", "\u3000", "\u2028", "\x0b", "\x1c", "\x85", "…"]

texts = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from(3 * SPACES + ENDS)), max_size=60
).map(lambda pieces: "".join(word + end for word, end in pieces))


def write_files(folder, texts, prefix="text"):
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{prefix}{number}.txt"
        path.write_bytes(text.encode())
        paths.append(path)
    return paths


def scan(folder, texts, *, chunk_bytes=1 << 20, **options):
    reader = TextReader(write_files(folder, texts), chunk_bytes=chunk_bytes)
    return scan_corpus(reader, **options)


def resources(**options):
    return Resources(**{"num_threads": 1, **options})
