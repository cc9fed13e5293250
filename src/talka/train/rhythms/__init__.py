"""Rhythms decide when workers synchronise, and use the result. One file each.

base.py         the protocol: a context manager around an unchanged loop
every_step.py   average gradients in every step
delayed.py      apply averages some steps later, while computing continues
local_sgd.py    average the changes of several steps; outer.py has the outer optimizers
shares.py       unequal shares of a batch for machines of unequal speed
backward.py     buckets of gradients, handed over during the backward pass
agreement.py    workers compare their models before the first step
notices.py      workers that leave or fail notify the others
"""
