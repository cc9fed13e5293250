"""Plans of graph algorithms: their layout compared with counting by hand, its work folder, its engines."""

import errno
import os
from pathlib import Path

import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from talka.engine.by_name import check_engine
from talka.errors import (
    DiskFullError,
    OptionError,
    OutputError,
    SavedStateError,
    UnknownNameError,
)
from talka.events import Measured, Predicted, Stream
from talka.graph import Graph
from talka.graph.algorithms import ALGORITHMS
from talka.graph.events import SuperstepDone
from talka.graph.programs import kernel_cache
from talka.graph.trials import GRAPH
from talka.jobs.graph import Arguments, GraphConfig, GraphPlan, Input, Placement
from talka.jobs.graph import config as config_module
from talka.jobs.graph.layout import layout_of
from talka.jobs.graph.work import CheckpointFolder
from talka.profile import this_machine
from tests.plan_parts import parts_of

PLAN = {"algorithm": "pagerank", "partitions": 2, "engine": "embedded", "checkpoint_every": None}


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{n % 40} {(n * 7) % 33}\n" for n in range(300)))
    return path


def config_for(edges, algorithm="pagerank", *, arguments=None, **placement):
    return GraphConfig(
        algorithm=algorithm,
        input=Input(edges=str(edges)),
        arguments=arguments or Arguments(),
        placement=Placement(**placement),
    )


def run(job):
    events, emitted = Stream(), []
    with events.listening(emitted.append):
        return job.run(events), emitted


class TestPlan:
    @settings(deadline=None, max_examples=40)
    @given(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40),
        st.integers(2, 4),
        st.sampled_from(["ranges", "hash"]),
        st.booleans(),
    )
    def test_cut_edges_and_mirrors_are_what_counting_finds(self, edges, partitions, how, directed):
        graph = Graph.from_edges(edges, directed=directed)
        plan = layout_of(graph, config_for("x", num_partitions=partitions, partitioning=how))
        owners = graph.cut(partitions, how).owners
        ends = [tuple(int(graph.number_of(end)) for end in edge) for edge in edges]
        if not directed:
            ends += [(v, u) for u, v in ends if u != v]
        apart = [(u, v) for u, v in ends if owners[u] != owners[v]]
        assert plan.cut_edges == pytest.approx(len(apart) / len(ends))
        assert plan.num_mirrors == len({(owners[u], v) for u, v in apart})
        assert (plan.num_edges, plan.num_vertices) == (len(edges), graph.num_vertices)
        assert plan.graph_bytes > 0
        assert plan.edges_per_s > 0

    def test_one_partition_has_no_mirrors(self, edges):
        job = GraphPlan(config_for(edges))
        plan = job.prepare(Stream())
        assert (plan.num_mirrors, plan.cut_edges, plan.balance) == (0, 0.0, 1.0)
        assert {row.sent_bytes for row in parts_of(job) if "superstep/" in row.cost_id} == {0.0}

    def test_it_is_said_before_the_file_is_read_how_large_it_is(self, edges):
        rows = {row.cost_id: row for row in parts_of(GraphPlan(config_for(edges)))}
        assert list(rows) == ["graph", "graph/read", "graph/build", "graph/compile"]
        assert "about 300 edges" in rows["graph/build"].reason
        figures = this_machine().figures(GRAPH)
        assert rows["graph/build"].seconds > figures["load_build_s"], "kernels have to be loaded"
        assert rows["graph/read"].seconds > 0

    def test_a_packed_file_says_that_nothing_is_known(self, edges):
        packed = edges.with_suffix(".txt.gz")
        packed.write_bytes(b"not looked at")
        seconds = {row.cost_id: row.seconds for row in parts_of(GraphPlan(config_for(packed)))}
        assert (seconds["graph/read"], seconds["graph/build"]) == (None, None)

    def test_where_a_frontier_speaks_bytes_are_called_an_estimate(self, edges):
        arguments = Arguments(source=("1",))
        job = GraphPlan(config_for(edges, "bfs", arguments=arguments, num_partitions=3))
        plan = job.prepare(Stream())
        row = parts_of(job)[-1]
        assert (row.cost_id, row.sent_bytes) == (
            "graph/supersteps",
            pytest.approx(plan.num_mirrors * 8 * 1.1),
        )
        assert row.reason.startswith("about: ")

    def test_very_many_supersteps_are_not_all_predicted(self, edges):
        job = GraphPlan(config_for(edges, arguments=Arguments(num_supersteps=5_000)))
        job.prepare(Stream())
        assert (
            len([row for row in parts_of(job) if row.cost_id.startswith("graph/superstep/")]) == 100
        )


class TestRunning:
    def test_predictions_and_measurements_meet_on_their_parts(self, edges):
        job = GraphPlan(config_for(edges, num_partitions=3, partitioning="hash"))
        result, emitted = run(job)
        predicted = {
            event.cost_id: event.sent_bytes for event in emitted if isinstance(event, Predicted)
        }
        measured = {
            event.cost_id: event.sent_bytes for event in emitted if isinstance(event, Measured)
        }
        supersteps = [part for part in predicted if part.startswith("graph/superstep/")]
        assert len(supersteps) == 21
        assert all(predicted[part] == measured[part] for part in supersteps)
        assert set(predicted) <= set(measured)
        assert result["sent_bytes"] == sum(predicted[part] for part in supersteps) > 0
        assert result["num_rows"] == job.answer.num_rows == 40

    def test_compiling_is_predicted_until_it_has_been_done(self, edges, tmp_path, monkeypatch):
        monkeypatch.setattr(kernel_cache, "folder", lambda: tmp_path)
        job = GraphPlan(config_for(edges))
        [first] = [row for row in parts_of(job) if row.cost_id == "graph/compile"]
        _, emitted = run(job)
        assert "graph/compile" in {e.cost_id for e in emitted if isinstance(e, Measured)}
        [second] = [row for row in parts_of(job) if row.cost_id == "graph/compile"]
        assert first.seconds > 10 * second.seconds
        assert "for the first time" in first.reason

    def test_what_was_loaded_for_the_plan_is_not_read_again(self, edges):
        job = GraphPlan(config_for(edges))
        job.prepare(Stream())
        edges.unlink()
        result, emitted = run(job)
        assert result["num_vertices"] == 40
        assert not any(isinstance(event, Predicted) for event in emitted), "predicted before"

    def test_watch_is_called_for_every_superstep(self, edges):
        watched = []
        result, _ = run(GraphPlan(config_for(edges), watch=watched.append))
        supersteps = [event for event in watched if isinstance(event, SuperstepDone)]
        assert len(supersteps) == result["num_supersteps"] == 21

    def test_a_file_that_appears_meanwhile_is_not_replaced(self, edges, tmp_path):
        out = tmp_path / "out.parquet"

        def appear(event):
            if isinstance(event, SuperstepDone):
                out.write_text("somebody else's")

        with pytest.raises(OutputError, match="was created during the run"):
            run(GraphPlan(config_for(edges), out, watch=appear))
        assert out.read_text() == "somebody else's"
        assert {path.name for path in tmp_path.iterdir()} == {"edges.txt", "out.parquet"}

    @pytest.mark.slow
    def test_ray_gives_the_same_table(self, edges, tmp_path, ray_cluster):
        here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
        run(GraphPlan(config_for(edges, num_partitions=3), here))
        address = f"ray://{ray_cluster.address}"
        result, emitted = run(GraphPlan(config_for(edges, num_partitions=3, engine=address), there))
        assert pyarrow.parquet.read_table(there) == pyarrow.parquet.read_table(here)
        predicted = {event.cost_id: event for event in emitted if isinstance(event, Predicted)}
        assert predicted["graph/superstep/0"].seconds is None, (
            "the speed of those machines is not known"
        )
        assert result["sent_bytes"] == 20 * predicted["graph/superstep/0"].sent_bytes


def stopped_at(superstep):
    """Return a listener that interrupts a run there; any other error would not stop it."""

    def watch(event):
        if isinstance(event, SuperstepDone) and event.superstep == superstep:
            raise KeyboardInterrupt

    return watch


class TestResuming:
    def job(self, edges, out, algorithm, **options):
        source = ("1",) if ALGORITHMS[algorithm].needs_source else ()
        arguments = Arguments(source=source)
        placement = {"num_partitions": 3, "checkpoint_every": 1}
        return GraphPlan(
            config_for(edges, algorithm, arguments=arguments, **placement), out, **options
        )

    @pytest.mark.parametrize(
        "algorithm", sorted(set(ALGORITHMS) - {"degrees", "strong-components"})
    )
    def test_a_run_that_was_stopped_gives_the_same_bytes(self, edges, tmp_path, algorithm):
        whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
        run(self.job(edges, whole, algorithm))
        for superstep in (1, 2):
            stopped = self.job(edges, out, algorithm, watch=stopped_at(superstep))
            with pytest.raises(KeyboardInterrupt):
                run(stopped)
            assert stopped.can_be_resumed
            assert not out.exists()
            _, emitted = run(self.job(edges, out, algorithm, resume=True))
            first = min(event.superstep for event in emitted if isinstance(event, SuperstepDone))
            assert first == superstep - 1, "the last one that was saved"
            assert out.read_bytes() == whole.read_bytes()
            assert {path.name for path in tmp_path.iterdir()} == {"edges.txt", out.name, whole.name}
            out.unlink()

    def test_a_full_disk_names_the_checkpoint_and_costs_only_what_came_after(
        self, edges, tmp_path, monkeypatch
    ):
        whole, out = tmp_path / "whole.csv", tmp_path / "out.csv"
        run(self.job(edges, whole, "pagerank"))

        def fill_the_disk(event):
            if isinstance(event, SuperstepDone) and event.superstep == 4:
                monkeypatch.setattr(os, "fsync", refuse)

        def refuse(file):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with pytest.raises(DiskFullError, match=r"superstep-0+4\.checkpoint.*Free some space"):
            run(self.job(edges, out, "pagerank", watch=fill_the_disk))
        monkeypatch.undo()
        assert not out.exists()
        run(self.job(edges, out, "pagerank", resume=True))
        assert out.read_bytes() == whole.read_bytes()

    def test_another_graph_under_the_same_name_is_refused(self, edges, tmp_path):
        out = tmp_path / "out.csv"
        with pytest.raises(KeyboardInterrupt):
            run(self.job(edges, out, "pagerank", watch=stopped_at(4)))
        with edges.open("a") as file:
            file.write("1 2\n")
        with pytest.raises(SavedStateError, match="belongs to another graph"):
            run(self.job(edges, out, "pagerank", resume=True))
        assert not out.exists()

    def test_a_damaged_checkpoint_is_refused(self, edges, tmp_path):
        out = tmp_path / "out.csv"
        with pytest.raises(KeyboardInterrupt):
            run(self.job(edges, out, "pagerank", watch=stopped_at(4)))
        [saved] = (tmp_path / "out.csv.unfinished").glob("superstep-*.checkpoint")
        content = bytearray(saved.read_bytes())
        content[-9] ^= 1
        saved.write_bytes(content)
        with pytest.raises(SavedStateError, match="its checksum does not match"):
            run(self.job(edges, out, "pagerank", resume=True))


class TestConfig:
    def test_every_algorithm_that_takes_something_exists(self):
        assert set(config_module._TAKES) <= set(ALGORITHMS)
        for name, algorithm in ALGORITHMS.items():
            assert not algorithm.needs_source or "source" in config_module._TAKES[name]

    @pytest.mark.parametrize("name", ["embedded", "ray", "ray://head:6379", "ray://10.0.0.1:1"])
    def test_engines_that_exist(self, name):
        check_engine(name)

    @pytest.mark.parametrize("name", ["", "Ray", "ray://", "ray://head", "ray://:1", "http://a:1"])
    def test_engines_that_do_not(self, name):
        problem = (
            "has no address"
            if name.startswith("ray:")
            else "must be embedded, ray or an address such as ray://"
        )
        with pytest.raises(OptionError, match=problem):
            check_engine(name)

    def test_names_that_are_wrong(self):
        with pytest.raises(UnknownNameError):
            config_for("x", "page")
        with pytest.raises(UnknownNameError):
            config_for("x", partitioning="vertexcut")
        with pytest.raises(OptionError, match="source is missing"):
            config_for("x", "sssp")

    def test_a_run_is_recorded_under_the_names_of_the_command_line(self):
        """The same names let --resume recognise the plan of an earlier version."""
        config = GraphConfig(
            algorithm="pagerank",
            input=Input(edges="x", directed=False),
            arguments=Arguments(num_supersteps=3),
            placement=Placement(num_partitions=2),
        )
        names = ("undirected", "supersteps", "partitions")
        assert {name: config.resolved()[name] for name in names} == {
            "undirected": True,
            "supersteps": 3,
            "partitions": 2,
        }


class TestCheckpointFolder:
    def opened(self, folder, plan=PLAN, *, resume=False, force=False):
        work = CheckpointFolder(folder / "out.csv", plan, resume=resume, force=force)
        work.open()
        return work

    def test_a_checkpoint_stays_until_the_end(self, tmp_path):
        work = self.opened(tmp_path)
        (work.path / "superstep-000000001.checkpoint").touch()
        work.close()
        assert work.path.exists()
        work = self.opened(tmp_path, resume=True)
        work.remove()
        work.close()
        assert list(tmp_path.iterdir()) == []

    def test_only_the_same_job_goes_on_wherever_it_runs(self, tmp_path):
        work = self.opened(tmp_path)
        (work.path / "superstep-000000001.checkpoint").touch()
        work.close()
        with pytest.raises(OutputError, match=r"other options \(--partitions 2\)"):
            self.opened(tmp_path, {**PLAN, "partitions": 3}, resume=True)
        work = self.opened(tmp_path, {**PLAN, "engine": "ray", "checkpoint_every": 5}, resume=True)
        assert work.has_progress
        work.close()
        assert work.path.exists()

    def test_what_is_no_ordinary_file_is_left_alone(self):
        with pytest.raises(OutputError, match="is not a regular file"):
            CheckpointFolder(Path("/dev/null"), PLAN, resume=False, force=True)
