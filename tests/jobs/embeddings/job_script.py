"""Run the embeddings job in a separate process, without predictions.

python -m tests.jobs.embeddings.job_script TEXT OUT '{"epochs": 40}' [resume]

It leaves OUT and the folder of runs next to it, like the command.
"""

import json
import sys
from pathlib import Path

from talka.jobs.base import execute
from talka.jobs.embeddings.plan import EmbedPlan
from talka.plans import Part
from tests.jobs.embeddings.small_text import config_of


def main(text, out, options, *resume):
    job = EmbedPlan(config_of(text, **json.loads(options)), Path(out), resume=bool(resume))
    execute(job, Part(cost_id="embed"), root=Path(out).parent / "runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
