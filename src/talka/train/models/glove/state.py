"""The file format of a model between two epochs; files are written atomically.

Arrow IPC with one column, the table as it is in memory. Its dimensions and a checksum are JSON in the
metadata of the schema.
"""

import json
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from talka.errors import SavedStateError, output_error
from talka.files import whole_file
from talka.train.models.glove.table import Table, empty_table

FORM = "talka glove 1"


def write_state(path: Path, table: Table, *, dim: int, facts: dict[str, Any]) -> None:
    """Save a table with facts (JSON-compatible values) that `read_state` returns."""
    values = table.reshape(-1)
    header = {
        "form": FORM,
        "num_words": len(table) // 2,
        "dim": dim,
        "crc32": zlib.crc32(values.data),
        "facts": facts,
    }
    schema = pa.schema([("values", pa.float32())], metadata={"talka": json.dumps(header)})
    batch = pa.record_batch([pa.array(values)], schema=schema)
    try:
        with whole_file(path) as beside, pa.ipc.new_file(str(beside), schema) as writer:
            writer.write_batch(batch)
    except OSError as error:
        raise output_error(path, error, "Check the folder and its free space.") from error


def read_state(path: Path) -> tuple[Table, dict[str, Any]]:
    """Return the table and the facts, to which num_words and dim are added."""
    try:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            header = json.loads((reader.schema.metadata or {})[b"talka"])
            if header["form"] != FORM:
                raise SavedStateError(str(path), f"has the form {header['form']!r}, not {FORM!r}")
            table = empty_table(header["num_words"], header["dim"])
            table.reshape(-1)[:] = reader.get_batch(0).column("values").to_numpy()
    except OSError as error:
        raise SavedStateError(str(path), f"cannot be read ({error.strerror or error})") from error
    except (ValueError, LookupError, TypeError) as error:
        raise SavedStateError(str(path), f"is not a saved model ({error})") from error
    if zlib.crc32(table.reshape(-1).data) != header["crc32"]:
        raise SavedStateError(str(path), "is damaged (its checksum does not match)")
    facts = {"num_words": header["num_words"], "dim": header["dim"], **header["facts"]}
    return table, facts
