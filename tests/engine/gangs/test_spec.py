"""Sizes, roles and arguments of gangs, and what a worker knows about roles."""

import pytest

from talka.engine.gangs.losses import Losses
from talka.engine.gangs.spec import gang_spec
from talka.engine.gangs.worker import GangWorker
from talka.errors import InvalidValueError, UnknownNameError

SIZE = {"server": 2, "worker": 4}


def main(worker):
    return worker


def test_ranks_are_numbered_in_the_order_of_roles():
    spec = gang_spec(main, (1,), size=SIZE, backend=None, args_of={"server": ("a", "b")})
    assert spec.roles == ("server",) * 2 + ("worker",) * 4
    assert spec.arguments == {"server": (1, "a", "b"), "worker": (1,)}
    assert spec.mains == {"server": main, "worker": main}
    workers = [GangWorker(rank, 6, roles=spec.roles) for rank in range(6)]
    assert [worker.index for worker in workers] == [0, 1, 0, 1, 2, 3]
    assert workers[0].ranks_of("worker") == (2, 3, 4, 5)
    with pytest.raises(UnknownNameError, match=r"no role named 'sever'. Did you mean 'server'\?"):
        workers[0].ranks_of("sever")


def test_without_roles_all_ranks_are_workers():
    assert gang_spec(main, (), size=2).roles == ("worker", "worker")
    worker = GangWorker(1, 2)
    assert (worker.role, worker.index, worker.ranks_of("worker")) == ("worker", 1, (0, 1))


def test_every_gang_has_a_secret_that_is_not_shown():
    first, second = (gang_spec(main, (), size=1) for _ in range(2))
    assert len(first.secret) == 32
    assert first.secret != second.secret
    assert repr(first.secret)[2:10] not in repr(first)


@pytest.mark.parametrize(
    "options, error, says",
    [
        ({"size": 0}, InvalidValueError, "size is 0, but must be a whole number of at least 1"),
        ({"size": "2"}, InvalidValueError, "size is '2', but must be a whole number"),
        ({"size": {}}, InvalidValueError, "must be a number, or roles with their numbers of ranks"),
        ({"size": {"server": 0}}, InvalidValueError, r"size\['server'\] is 0, but must be a whole"),
        ({"size": {"": 1}}, InvalidValueError, "a role in size is '', but must be a text"),
        ({"args_of": {"sever": ()}}, UnknownNameError, "no role named 'sever'. Did .* 'server'"),
        (
            {"args_of": {"server": "ab"}},
            InvalidValueError,
            r"args_of\['server'\] is 'ab', but must",
        ),
        (
            {"main": {"server": main}},
            InvalidValueError,
            r"main\['worker'\] is None, but must be a f",
        ),
        ({"main": {"x": main}}, UnknownNameError, "no role named 'x'. Known: server, worker"),
        (
            {"main": 5},
            InvalidValueError,
            "main is 5, but must be a function, or a function for each",
        ),
        ({"on_failure": "ignore"}, InvalidValueError, "must be 'end' or 'report'"),
        ({"backend": "glo"}, UnknownNameError, "no backend named 'glo'. Did you mean 'gloo'"),
        ({"backend": "cpu:gloo,cuda:x"}, UnknownNameError, r"None \(no process group\)"),
        ({"backend": 1}, InvalidValueError, "must be None or one of gloo, nccl"),
    ],
)
def test_mistakes_are_refused_with_what_is_allowed(options, error, says):
    options = {"main": main, "size": SIZE, **options}
    with pytest.raises(error, match=says):
        gang_spec(options.pop("main"), (), **options)


def test_listeners_of_losses_are_called_once_per_rank_before_and_after():
    losses, heard = Losses(), []
    losses.record(1, "died (exit code 7)")
    losses.add_listener(lambda rank, how: heard.append((rank, how)))
    losses.add_listener(lambda rank, how: 1 / 0)  # must not stop the others
    losses.record(1, "died twice")
    losses.record(0, "raised")
    assert heard == [(1, "died (exit code 7)"), (0, "raised")]
    assert losses.ranks == {1: "died (exit code 7)", 0: "raised"}
