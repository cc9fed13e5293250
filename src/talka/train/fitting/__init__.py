"""`talka.train.fit`: training without a loop. One file per concept.

fit.py              where it runs: in this process, on existing ranks, or on workers that it starts
options.py          the options, checked; those of the command line come first
training.py         the loop of one worker: epochs, steps, validation, the end
data.py             samples as a Dataset, and batches of them
evaluation.py       loss and accuracy over samples that are split among the workers
making.py           optimizers and rhythms by their short forms
schedules.py        learning rates by step; theorem.py has that of the convergence theorem
record.py           what the training has reached so far; result.py is what `fit` returns
checkpoints.py      folders that are written completely or not at all; state_files.py has their files
randomness.py       random number generators: seeded for a worker, saved and restored
"""
