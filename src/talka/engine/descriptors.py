"""The limit of open files of this process.

Imports nothing large: pyarrow starts threads, and a process with threads cannot enter the namespaces
of a lab.
"""

import contextlib
import errno
import resource
from collections.abc import Iterator

from talka.errors import DescriptorLimitError


def descriptor_limit() -> int:
    """Return the number of descriptors that this process may have open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1_048_576 if limit == resource.RLIM_INFINITY else limit


@contextlib.contextmanager
def limit_explained() -> Iterator[None]:
    """Turn EMFILE and ENFILE into a DescriptorLimitError, which names the limit."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise DescriptorLimitError(descriptor_limit()) from error
