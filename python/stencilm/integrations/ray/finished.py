"""The results of earlier runs, stored in a folder, so that a new run continues from there.

One idea: a finished batch is one file, which appears whole or not at all, because it is written
under another name and then moved. So workers on many machines share a folder without a lock, and a
run may be killed at any time. A row is recognised by its key and by a digest of everything that
determines its answer; if the prompt, the type or an option has changed, it is not recognised.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.fs as pa_fs

from stencilm.integrations.ray.rows import COUNTS, Answer

_LOG = logging.getLogger("stencilm.ray")
_ENDING = ".rows.jsonl"
_NO_ROW = "%s holds a line that is no row, so that row is done again"


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a line."""

    file: str
    start: int
    length: int


class FinishedRows:
    """The rows in a folder: local, or under a URI that pyarrow knows, such as `s3://` or `gs://`.

    A worker reads the folder once, when it starts. For each row it only keeps the position.

    Raises:
        OSError: The folder can be neither read nor created.
        ValueError: There is no file system for the URI.
    """

    def __init__(self, folder: str) -> None:
        if "://" in folder:
            self._files, self._root = pa_fs.FileSystem.from_uri(folder)
        else:
            self._files = pa_fs.LocalFileSystem()
            self._root = os.path.abspath(os.path.expanduser(folder))
        self._is_local = isinstance(self._files, pa_fs.LocalFileSystem)
        self._files.create_dir(self._root, recursive=True)
        self._places: dict[str, _Place] = {}
        self._open: tuple[str, bytes] = ("", b"")
        for found in self._files.get_file_info(pa_fs.FileSelector(self._root)):
            if found.base_name.endswith(_ENDING):
                self._index(found.path)

    def __len__(self) -> int:
        return len(self._places)

    def get(self, digest: str) -> Answer | None:
        """The answer of the row with this digest; None if it is not finished."""
        place = self._places.get(digest)
        if place is None:
            return None
        if self._open[0] != place.file:
            # Rows that were finished together are usually requested together.
            self._open = (place.file, self._read(place.file))
        line = self._open[1][place.start : place.start + place.length]
        try:
            kept = json.loads(line)
            del kept["digest"]
            return _checked(Answer(**kept))
        except (ValueError, KeyError, TypeError):
            _LOG.warning(_NO_ROW, place.file)
            return None

    def add(self, rows: Iterable[tuple[str, Answer]]) -> None:
        """Store some rows, as one file."""
        lines = [
            json.dumps({"digest": digest, **asdict(answer)}, ensure_ascii=False)
            for digest, answer in rows
        ]
        if not lines:
            return
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
        path = f"{self._root}/{uuid.uuid4().hex}{_ENDING}"
        # An object store shows an object once it is complete; elsewhere, the file is moved to its
        # name.
        written = f"{path}.part" if self._is_local else path
        with self._files.open_output_stream(written) as stream:
            stream.write(data)
        if self._is_local:
            self._files.move(written, path)

    def _read(self, path: str) -> bytes:
        with self._files.open_input_stream(path) as stream:
            return bytes(stream.read())

    def _index(self, path: str) -> None:
        start = 0
        for line in self._read(path).splitlines(keepends=True):
            try:
                self._places[json.loads(line)["digest"]] = _Place(path, start, len(line))
            except (ValueError, KeyError, TypeError):
                _LOG.warning(_NO_ROW, path)
            start += len(line)


def _checked(answer: Answer) -> Answer:
    """A finished row that was read; raises TypeError if a column could not hold it."""
    counts = [getattr(answer, name) for name in COUNTS]
    is_row = isinstance(answer.text, str) and answer.error is None
    if not is_row or not all(type(count) is int for count in counts):
        raise TypeError("a field of the row has another type")
    if not isinstance(answer.seconds, (int, float)):
        raise TypeError("its seconds are no number")
    return answer


def digest_of(*parts: Any) -> str:
    """A short digest of everything that determines an answer."""
    import hashlib

    serialized = json.dumps(parts, ensure_ascii=True, sort_keys=True, default=repr)
    return hashlib.blake2b(serialized.encode(), digest_size=16).hexdigest()
