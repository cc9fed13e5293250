"""Compressors written outside of talka, by name and as objects, in every exchange that carries them."""

import pytest
import torch

import talka.train
from talka.compress import ErrorFeedback, StateKey, compressor, layout_of, register
from talka.engine import Embedded
from talka.errors import InvalidValueError, NonFiniteError, PayloadError, SavedStateError, SpecError
from talka.exchange import choices, open_exchange
from talka.exchange.registry import COMPRESSED, default_name
from talka.network import LOOPBACK, Network
from talka.short_forms import known_names
from tests.compress.outside import SPECS, Halved, Steps
from tests.exchange.cells import BUCKETS, run_cells, vector
from tests.exchange.twin import Twin

NUM_STEPS = 3
LAYOUT = layout_of({"w": (30, 40), "b": (30,)})
SUMMING = ("ring", "direct", "tree")
CELLS = [
    (spec, name, as_object)
    for spec in SPECS
    for name in COMPRESSED
    for as_object in (False, True)
    if name != "global-topk" and (spec.startswith("halved") or name not in SUMMING)
]


def made(spec, **options):
    """Return the compressor of a short form as a user makes an object."""
    inner = Steps(100, **options) if spec.startswith("steps") else Halved(**options)
    return ErrorFeedback(inner) if spec.endswith("+ef") else inner


def run_outside(worker, cells):
    chosen = [(made(spec) if as_object else spec, name) for spec, name, as_object in cells]
    return run_cells(worker, chosen, NUM_STEPS, NUM_STEPS)


@pytest.fixture(scope="module")
def outcomes():
    with Embedded() as engine:
        return {size: engine.gang(run_outside, CELLS, size=size) for size in (2, 3)}


@pytest.mark.parametrize("size", [2, 3])
def test_replicas_have_the_same_bits_by_name_and_as_object(outcomes, size):
    digests = {}
    for number, (spec, name, _) in enumerate(CELLS):
        digests.setdefault((spec, name), set()).update(ranks[number][0] for ranks in outcomes[size])
    assert {cell for cell, found in digests.items() if len(found) != 1} == set()


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "number", range(0, len(CELLS), 2), ids=lambda number: "-".join(CELLS[number][:2])
)
def test_the_average_is_the_twins(outcomes, number, size):
    spec, name, _ = CELLS[number]
    kept = outcomes[size][0][number][1]
    twin = Twin(spec, size, [list(range(size))[start : start + 2] for start in range(0, size, 2)])
    for step in range(NUM_STEPS):
        for bucket, shapes in enumerate(BUCKETS):
            layout = layout_of(shapes)
            vectors = [vector(layout, rank, step, bucket) for rank in range(size)]
            expected = getattr(twin, name.replace("-", "_"))(vectors, layout)
            average = torch.tensor(kept[step][bucket])
            if name == "ring":
                torch.testing.assert_close(average, expected, rtol=0.02, atol=0.02)
            else:
                assert torch.equal(average, expected), (step, bucket)


def test_properties_decide_on_the_default_exchange_and_on_what_is_refused():
    assert default_name(made("steps:100+ef"), 4) == "two-phase"
    assert default_name(made("halved+ef"), 4) == "ring"
    with pytest.raises(SpecError, match="cannot be summed while encoded"):
        COMPRESSED["ring"].check(made("steps:100+ef"))
    with pytest.raises(SpecError, match="does not keep the K largest values"):
        COMPRESSED["global-topk"].check(made("halved"))
    network = Network.equal(LOOPBACK, 3)
    by_name, as_object = choices("steps:100", 1000, network), choices(Steps(100), 1000, network)
    assert by_name == as_object


def test_objects_without_all_members_are_refused_by_what_they_lack(alone):
    class Unfinished:
        spec, summable = "unfinished", True

    with pytest.raises(
        InvalidValueError, match="it has no sparse, .*load_state, to_wire, from_wire"
    ):
        open_exchange(Unfinished())
    with pytest.raises(InvalidValueError, match="object with all members of talka.compress.Comp"):
        open_exchange(object())
    with pytest.raises(
        InvalidValueError, match="is 'class tests.compress.outside.Steps'.*this is a class"
    ):
        open_exchange(Steps)
    with pytest.raises(InvalidValueError, match="without error feedback"):
        ErrorFeedback(made("steps:100+ef"))


def test_options_belong_to_the_object(alone):
    with pytest.raises(
        InvalidValueError, match="nonfinite of the compressor 'halved.ef' is 'error'"
    ):
        open_exchange(made("halved+ef"), nonfinite="pass")
    with pytest.raises(
        InvalidValueError, match="min_compressed_values of the compressor 'steps:100'"
    ):
        open_exchange(Steps(100), min_compressed_values=256)
    open_exchange(made("halved", nonfinite="pass"), nonfinite="pass").close()


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("as_object", [False, True])
def test_nan_is_an_error_or_passes_and_leaves_residuals_unchanged(alone, spec, as_object):
    values = torch.randn(1230, generator=torch.Generator().manual_seed(0))
    poisoned = values.clone()
    poisoned[1210] = torch.nan
    for exchange_name in (None, "all-gather"):
        exchange = open_exchange(made(spec) if as_object else spec, exchange_name)
        exchange.average(values.clone(), LAYOUT).wait()
        with pytest.raises(NonFiniteError, match="'b' holds NaN"):
            exchange.average(poisoned.clone(), LAYOUT).wait()
        assert all(
            value.isfinite().all() for side in exchange.residuals() for value in side.values()
        )
        exchange.close()
        passing = made(spec, nonfinite="pass") if as_object else spec
        exchange = open_exchange(passing, exchange_name, nonfinite="pass")
        exchange.average(values.clone(), LAYOUT).wait()
        before = [
            {name: value.clone() for name, value in side.items()} for side in exchange.residuals()
        ]
        assert not exchange.average(poisoned.clone(), LAYOUT).wait().isfinite().all()
        for side, kept in zip(exchange.residuals(), before, strict=True):
            assert all(torch.equal(side[name], kept[name]) for name in kept)
        exchange.close()


def test_a_payload_beyond_max_bytes_is_refused_before_it_is_sent(alone):
    class TooLong(Halved):
        def max_bytes(self, num_values, layout=None):
            return 64

        def encode(self, values, layout=None, *, out=None):
            return Halved().encode(values, layout)

    exchange = open_exchange(TooLong(), "all-gather")
    with pytest.raises(PayloadError, match="more than its max_bytes"):
        exchange.average(torch.ones(1230), LAYOUT).wait()
    exchange.close()


@pytest.mark.parametrize("name", ["", "Mine", "1mine", "mi-ne", "mi:ne", "mine+ef", "ef", "größe"])
def test_names_that_short_forms_cannot_have_are_refused(name):
    with pytest.raises(InvalidValueError, match="lower-case letters"):
        register(name, Steps.parse)


@pytest.mark.parametrize("name", ["topk", "powersgd", "steps"])
def test_names_that_are_taken_are_refused(name):
    with pytest.raises(InvalidValueError, match="one that is not taken"):
        register(name, Halved.parse)
    register("steps", Steps.parse)  # again: nothing changes
    assert compressor("steps:7+ef").spec == "steps:7+ef"
    assert known_names().count("steps") == 1
    with pytest.raises(SpecError, match="'steps:100', the nearest"):
        compressor("stebs:100")


def trained(hooked, num_steps):
    for step in range(num_steps):
        hooked.zero_grad()
        x = torch.randn(8, 40, generator=torch.Generator().manual_seed(step))
        hooked(x).square().mean().backward()
    return [parameter.grad.clone() for parameter in hooked.parameters()]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("as_object", [False, True])
def test_attach_save_and_load(alone, tmp_path, spec, as_object):
    def attached():
        torch.manual_seed(0)
        ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(40, 30))
        return ddp, talka.train.attach(ddp, made(spec) if as_object else spec)

    ddp, hook = attached()
    trained(ddp, 3)
    hook.save(tmp_path)
    state = hook.exchange.state()
    hook.close()
    other, loaded = attached()
    loaded.load(tmp_path)
    assert loaded.exchange.state().keys() == state.keys()
    assert all(torch.equal(loaded.exchange.state()[key], state[key]) for key in state)
    if spec.startswith("halved"):
        assert StateKey("extra", "encodings", side="worker") in state
    loaded.swap("onebit+ef")
    with pytest.raises(SavedStateError, match="was saved with"):
        loaded.load(tmp_path)
    trained(other, 1)
    loaded.close()
