"""Word embeddings from raw text: the job, the vectors it produces, and their evaluation."""

from talka.jobs.embeddings.evaluation import AnalogyReport, SimilarityReport, evaluate
from talka.jobs.embeddings.vectors import Embeddings, Neighbour, UnknownWordError

__all__ = [
    "AnalogyReport",
    "Embeddings",
    "Neighbour",
    "SimilarityReport",
    "UnknownWordError",
    "evaluate",
]
