"""PowerSGD: worked sizes, a float64 twin, exact cases, and residuals that are sent later."""

import pytest
import torch

from talka.compress import layout_of
from talka.engine import Embedded
from talka.exchange import open_exchange
from talka.exchange.topologies.low_rank import split

SHAPES = {"w": (30, 20), "conv": (8, 4, 3, 3), "b": (30,), "thin": (2, 3)}


def resnet18_shapes():
    """The CIFAR one: 3x3 first convolution, ten classes, 11,173,962 parameters."""
    shapes = {"conv1": (64, 3, 3, 3), "bn1.weight": (64,), "bn1.bias": (64,)}
    width = 64
    for stage, out in enumerate((64, 128, 256, 512)):
        for block in range(2):
            name, came = f"layer{stage}.{block}", width if block == 0 else out
            shapes |= {f"{name}.conv1": (out, came, 3, 3), f"{name}.conv2": (out, out, 3, 3)}
            norms = ["bn1", "bn2"]
            if came != out:
                shapes[f"{name}.shortcut"] = (out, came, 1, 1)
                norms.append("bn3")
            for norm in norms:
                shapes |= {f"{name}.{norm}.weight": (out,), f"{name}.{norm}.bias": (out,)}
        width = out
    return {**shapes, "linear.weight": (10, 512), "linear.bias": (10,)}


@pytest.mark.parametrize("rank, floats", [(1, 45_935), (2, 82_260), (4, 154_910)])
def test_resnet_18_takes_as_many_floats_as_in_the_paper(rank, floats):
    layout = layout_of(resnet18_shapes())
    assert layout[-1].stop == 11_173_962
    assert sum(split(layout, rank).num_floats(rank)) == floats


def gradients(rank, step):
    generator = torch.Generator().manual_seed(10 * step + rank)
    return torch.randn(layout_of(SHAPES)[-1].stop, generator=generator)


def run(worker, factor_rank, num_steps):
    layout, exchange = layout_of(SHAPES), open_exchange(f"powersgd:{factor_rank}")
    results = [
        exchange.average(gradients(worker.rank, step), layout).wait().tolist()
        for step in range(num_steps)
    ]
    residuals = {name: value.tolist() for name, value in exchange.residuals()[0].items()}
    return [results, residuals]


def twin(size, factor_rank, num_steps):
    """The algorithm of the paper, in float64, all workers in one process."""
    layout = layout_of(SHAPES)
    lost = [torch.zeros(layout[-1].stop, dtype=torch.float64) for _ in range(size)]
    start, results = {}, []
    for step in range(num_steps):
        vectors = [gradients(rank, step).double() for rank in range(size)]
        result = torch.stack(vectors).mean(0)
        for piece in layout:
            if piece.name in ("b", "thin"):
                continue
            m, n = piece.shape[0], piece.full_length // piece.shape[0]
            place = slice(piece.start, piece.stop)
            wanted = [(v[place] + e[place]).view(m, n) for v, e in zip(vectors, lost, strict=True)]
            if piece.name not in start:
                seeded = torch.Generator().manual_seed(n)
                start[piece.name] = torch.randn(n, factor_rank, generator=seeded).double()
            p = torch.stack([matrix @ start[piece.name] for matrix in wanted]).mean(0)
            p = torch.linalg.qr(p).Q
            start[piece.name] = torch.stack([matrix.T @ p for matrix in wanted]).mean(0)
            approximated = p @ start[piece.name].T
            result[place] = approximated.reshape(-1)
            for rank, matrix in enumerate(wanted):
                lost[rank][place] = (matrix - approximated).reshape(-1)
        results.append(result)
    return results, lost


@pytest.fixture(scope="module")
def engine():
    with Embedded() as engine:
        yield engine


@pytest.mark.parametrize("size", [1, 3])
def test_it_is_the_papers_algorithm(engine, size):
    ranks = engine.gang(run, 2, 5, size=size)
    expected, lost = twin(size, 2, 5)
    for rank, (results, residuals) in enumerate(ranks):
        for got, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(torch.tensor(got).double(), wanted, rtol=1e-3, atol=1e-4)
        assert set(residuals) == {"w", "conv"}, "vectors and small matrices travel whole"
        torch.testing.assert_close(
            torch.tensor(residuals["w"]).double(), lost[rank][:600], rtol=1e-3, atol=1e-4
        )


def repeated(worker, num_steps):
    """The same gradient again and again: all of it has to arrive in the end."""
    layout, exchange = layout_of(SHAPES), open_exchange("powersgd:2")
    total = torch.zeros(layout[-1].stop)
    for _ in range(num_steps):
        total += exchange.average(gradients(0, 0), layout).wait()
    return float((total / num_steps - gradients(0, 0)).norm() / gradients(0, 0).norm())


def test_what_is_lost_is_said_later(engine):
    [after_3, after_60] = [engine.gang(repeated, n, size=2)[0] for n in (3, 60)]
    assert after_60 < 0.15 < after_3


def zeros_then_values(worker):
    layout, exchange = layout_of(SHAPES), open_exchange("powersgd:2")
    exchange.average(torch.zeros(layout[-1].stop), layout).wait()
    return float(exchange.average(gradients(0, 1), layout).wait()[:600].norm())


def test_a_step_of_zeros_does_not_blind_it(engine):
    assert engine.gang(zeros_then_values, size=1)[0] > 1
