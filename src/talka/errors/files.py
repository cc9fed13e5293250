"""Errors about files and folders: reading, writing and their content."""

import errno

from talka.errors.base import TalkaError


class RunDirectoryError(TalkaError):
    """A run directory cannot be written or read, or a folder is not one."""

    exit_code = 2

    def __init__(self, path: str, problem: str, advice: str) -> None:
        super().__init__(path, problem, advice)
        self.path, self.problem, self.advice = path, problem, advice

    def __str__(self) -> str:
        return f"run directory {self.path}: {self.problem}. {self.advice}"


class OutputError(TalkaError):
    """A requested output file cannot be written.

    >>> print(OutputError("/tmp", "is a folder", "Give the name of a file."))
    cannot write /tmp: it is a folder. Give the name of a file.
    """

    exit_code = 2

    def __init__(self, path: str, problem: str, advice: str) -> None:
        super().__init__(path, problem, advice)
        self.path, self.problem, self.advice = path, problem, advice

    def __str__(self) -> str:
        return f"cannot write {self.path}: it {self.problem}. {self.advice}"


class DiskFullError(OutputError):
    """The disk is full, or a quota is used up, while a job is writing.

    >>> print(DiskFullError("a.csv", "cannot be written (No space left on device)", "Free some."))
    cannot write a.csv: it cannot be written (No space left on device). Free some.
    """

    exit_code = 1


def output_error(path: object, error: OSError, advice: str) -> OutputError:
    """Return the error to raise if the file system refuses to write `path`.

    >>> output_error("a.csv", OSError(errno.ENOSPC, "No space left on device"), "Try another.")
    DiskFullError('a.csv', 'cannot be written (No space left on device)', 'Free some space. Try another.')
    """
    problem = f"cannot be written ({error.strerror or error})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFullError(str(path), problem, f"Free some space. {advice}")
    return OutputError(str(path), problem, advice)


class InputError(TalkaError):
    """A file, a pipe or standard input cannot be read.

    >>> print(InputError("standard input", "is a terminal", "Give the name of a file."))
    cannot read standard input: it is a terminal. Give the name of a file.
    """

    exit_code = 2

    def __init__(self, path: str, problem: str, advice: str) -> None:
        super().__init__(path, problem, advice)
        self.path, self.problem, self.advice = path, problem, advice

    def __str__(self) -> str:
        return f"cannot read {self.path}: it {self.problem}. {self.advice}"


class HostsFileError(TalkaError):
    """A hosts file cannot be read, or is wrong in a line.

    >>> print(HostsFileError("hosts.toml", 3, "has the unknown key 'rat'", "Did you mean rate?"))
    hosts.toml, line 3: the file has the unknown key 'rat'. Did you mean rate?
    """

    exit_code = 2

    def __init__(self, path: str, line: int | None, problem: str, advice: str) -> None:
        super().__init__(path, line, problem, advice)
        self.path, self.line, self.problem, self.advice = path, line, problem, advice

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: the file {self.problem}. {self.advice}"


class CorpusError(TalkaError):
    """A text file cannot be read, or is not text.

    >>> print(CorpusError("notes.txt", "does not exist", "Check the path."))
    cannot use notes.txt: it does not exist. Check the path.
    """

    exit_code = 2

    def __init__(self, source: str, problem: str, advice: str) -> None:
        super().__init__(source, problem, advice)
        self.source, self.problem, self.advice = source, problem, advice

    def __str__(self) -> str:
        return f"cannot use {self.source}: it {self.problem}. {self.advice}"


class TokenizerError(TalkaError, ValueError):
    """A function that splits text into words did not return a list of words."""

    exit_code = 2

    def __init__(self, given: str) -> None:
        super().__init__(given)
        self.given = given

    def __str__(self) -> str:
        return (
            f"the tokenizer returned {self.given}, but must return a list of str, none of them empty "
            "or with white space inside (the text format of word vectors cannot represent it). Join "
            "the words of a phrase with `_`."
        )


class NothingToLearnError(TalkaError):
    """The text was read, but contains no words or no pairs to learn from.

    >>> print(NothingToLearnError("the corpus has no words", "Give more text."))
    nothing to learn from: the corpus has no words. Give more text.
    """

    exit_code = 2

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"nothing to learn from: {self.problem}. {self.advice}"


class SavedStateError(TalkaError):
    """Saved state of an earlier run is missing, incomplete or damaged.

    >>> print(SavedStateError("work/pairs.bin", "is shorter than it was"))
    cannot resume from work/pairs.bin: it is shorter than it was. Start again without resuming.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"cannot resume from {self.path}: it {self.problem}. Start again without resuming."


class ModelFileError(TalkaError):
    """A Python file of the user does not define a model.

    >>> print(ModelFileError("train.py:make", "it returned int, not an nn.Module"))
    no model from 'train.py:make': it returned int, not an nn.Module. Give FILE.py:FUNCTION, a function that needs no arguments and returns an nn.Module.
    """

    exit_code = 2

    def __init__(self, given: str, problem: str) -> None:
        super().__init__(given, problem)
        self.given, self.problem = given, problem

    def __str__(self) -> str:
        return (
            f"no model from {self.given!r}: {self.problem}. Give FILE.py:FUNCTION, a function that "
            "needs no arguments and returns an nn.Module."
        )
