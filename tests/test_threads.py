import threading

import pytest

from talka.threads import ThreadPool


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(num_threads):
    with ThreadPool(num_threads) as pool:
        assert list(pool.map(lambda number: 2 * number, range(100))) == list(range(0, 200, 2))


def test_one_thread_is_the_callers_own():
    with ThreadPool(1) as pool:
        assert pool.submit(threading.get_ident).result() == threading.get_ident()


@pytest.mark.parametrize("num_threads", [1, 2])
def test_items_are_taken_only_a_few_ahead(num_threads):
    taken = []
    with ThreadPool(num_threads) as pool:
        results = pool.map(lambda item: item, (taken.append(n) or n for n in range(1000)))
        next(results)
        assert len(taken) <= 2 * num_threads + 1


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_error_reaches_the_caller(num_threads):
    with ThreadPool(num_threads) as pool, pytest.raises(ZeroDivisionError):
        list(pool.map(lambda number: 1 // number, [1, 0, 1]))
