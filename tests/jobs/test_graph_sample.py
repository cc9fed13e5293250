"""Plans of files that are too large to be read completely for a plan."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from talka.errors import EdgeFileError
from talka.events import Stream
from talka.graph import Graph
from talka.jobs.graph import GraphConfig, GraphPlan, Input, Placement
from talka.jobs.graph import sample as module
from talka.jobs.graph.layout import layout_of
from tests.plan_parts import parts_of

NUM_VERTICES, NUM_EDGES = 3_000, 60_000


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """Files above 50 kB count as large, and 100 kB of them are a sample."""
    monkeypatch.setattr(module, "MAX_WHOLE_BYTES", 50_000)
    monkeypatch.setattr(module, "SAMPLE_BYTES", 100_000)
    monkeypatch.setattr(module, "_BATCH_ROWS", 200)
    monkeypatch.setattr(module, "SAMPLE_ROWS", 12_800)


def pairs():
    random = np.random.default_rng(1)
    ends = random.integers(0, NUM_VERTICES, (NUM_EDGES, 2))
    return ends[np.argsort(ends[:, 0], kind="stable")]  # sorted, as most files are


def lines(separator=" "):
    return "".join(f"{source}{separator}{target}\n" for source, target in pairs())


def table():
    return pa.table({"source": pairs()[:, 0], "target": pairs()[:, 1]})


def written(path):
    """Write the same edges in the format given by the suffix of the file."""
    name = path.name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines().encode(), 1))
    elif name.endswith(".csv"):
        path.write_text("source,target\n" + lines(","))
    elif name.endswith(".mtx"):
        banner = "%%MatrixMarket matrix coordinate pattern general\n% a comment\n"
        entries = "".join(f"{source + 1} {target + 1}\n" for source, target in pairs())
        path.write_text(f"{banner}{NUM_VERTICES} {NUM_VERTICES} {NUM_EDGES}\n{entries}")
    elif name.endswith(".parquet"):
        pa.parquet.write_table(table(), path, row_group_size=7_000)
    elif name.endswith(".arrow"):
        pa.feather.write_feather(table(), path, compression="uncompressed", chunksize=5_000)
    elif name.endswith(".adj"):
        targets = {}
        for source, target in pairs():
            targets.setdefault(source, []).append(str(target))
        path.write_text(
            "".join(f"{vertex} {' '.join(others)}\n" for vertex, others in targets.items())
        )
    else:
        path.write_text("# a comment\n" + lines())
    return path


def job_on(path, **placement):
    return GraphPlan(
        GraphConfig(
            algorithm="pagerank",
            input=Input(edges=str(path)),
            placement=Placement(num_partitions=3, **placement),
        )
    )


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.mtx", "a.parquet", "a.arrow", "a.adj"])
def test_a_plan_from_a_sample_is_near_the_plan_of_the_whole(tmp_path, name):
    path = written(tmp_path / name)
    job = job_on(path, partitioning="hash")
    plan = job.prepare(Stream())
    exact = layout_of(Graph.from_edges(str(path)), job._config)
    assert (plan.is_estimate, exact.is_estimate) == (True, False)
    assert plan.num_edges == pytest.approx(exact.num_edges, rel=0.1)
    assert plan.num_vertices == pytest.approx(exact.num_vertices, rel=0.1)
    assert plan.num_mirrors == pytest.approx(exact.num_mirrors, rel=0.3)
    assert plan.cut_edges == pytest.approx(exact.cut_edges, rel=0.1)
    assert plan.graph_bytes == pytest.approx(exact.graph_bytes, rel=0.3)
    rows = {row.cost_id: row for row in parts_of(job)}
    assert rows["graph/supersteps"].sent_bytes == 20 * 8 * plan.num_mirrors


def test_a_compressed_file_is_sampled_from_its_beginning(tmp_path):
    path = written(tmp_path / "a.txt.gz")
    plan = job_on(path).prepare(Stream())
    assert plan.is_estimate
    assert plan.num_edges == pytest.approx(NUM_EDGES, rel=0.3)


def test_a_small_file_is_read_as_a_whole(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("1 2\n2 3\n3 1\n")
    plan = job_on(path).prepare(Stream())
    assert (plan.is_estimate, plan.num_edges) == (False, 3)


def test_a_file_whose_lines_mean_something_by_their_number_is_read_as_a_whole(tmp_path):
    path = tmp_path / "ring.metis"
    count = 10_000
    ring = "".join(f"{(v - 1) % count + 1} {(v + 1) % count + 1}\n" for v in range(count))
    path.write_text(f"{count} {count}\n{ring}")
    plan = job_on(path).prepare(Stream())
    assert (plan.is_estimate, plan.num_vertices) == (False, count)


def test_a_run_after_the_plan_reads_the_whole_file(tmp_path):
    job = job_on(written(tmp_path / "a.txt"))
    job.prepare(Stream())
    result = job.run(Stream())
    assert result["num_edges"] == NUM_EDGES


def test_a_wrong_line_is_reported_as_if_the_whole_file_had_been_read(tmp_path):
    path = tmp_path / "wrong.txt"
    path.write_text(f"1 2\n2 3 4 5\n{lines()}")
    with pytest.raises(EdgeFileError, match=r"wrong\.txt, line 2"):
        job_on(path).prepare(Stream())
