"""`python -m talka`, for `torchrun -m talka` and where the console script is not on PATH."""

import sys

from talka.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
