r"""The bytes of a model file: JSON text, plain arrays, and a digest of both.

::

    treegram-model\n         15 bytes that no other file starts with
    length                  8 bytes, little endian: length of the text
    text                    JSON: format, versions, dtype and shape of each array, and the model
    arrays                  the values of one array after another, little endian, without gaps
    SHA-256                 32 bytes: digest of everything before it

Nothing is compressed, so a small file cannot expand into a large one. Nothing has a path, so nothing can be written
elsewhere. The digest detects damage; it does not prove who wrote the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from treegram._core.errors import ModelFileError

__all__ = ["FORMAT", "read_container", "write_container"]

FORMAT = 1  # increase it if older versions of treegram cannot read, or would misread, new files
MAGIC = b"treegram-model\n"
_HEAD = len(MAGIC) + 8
_DIGEST = 32
_NUMBERS = ("<f8", "<i8", "<u8", "|b1")
_MAX_CHARACTERS = 1000  # of one entry in an array of strings
_MAX_COLUMNS = 1000  # of an array without rows, since a small file could claim any number
# Objects parsed from JSON take up to 24 times the memory of the text, so the text must be a small part of a large file.
_TEXT_BYTES, _TEXT_FRACTION = 1 << 20, 8


def write_container(file: IO[bytes], content: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write the content, a JSON object, and the arrays that it refers to by index."""
    plain = [np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for array in arrays]
    for array in plain:
        _check_array(array.dtype.str, list(array.shape))
    kinds = [[array.dtype.str, list(array.shape)] for array in plain]
    text = json.dumps({**content, "arrays": kinds}, allow_nan=False, separators=(",", ":")).encode()
    n_bytes = _HEAD + len(text) + sum(array.nbytes for array in plain) + _DIGEST
    if len(text) > _max_text(n_bytes):
        raise ModelFileError(
            f"The model's labels and parameters make {len(text) / 1e6:.1f} MB of text, too much for a model file. Integer labels take "
            "no text: number the labels."
        )
    digest = hashlib.sha256()
    head = MAGIC + len(text).to_bytes(8, "little") + text
    for block in [memoryview(head), *(array.reshape(-1).view(np.uint8).data for array in plain)]:
        file.write(block)
        digest.update(block)
    file.write(digest.digest())


def read_container(path: Path) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Return the content and the arrays of a file; raise if anything in it was changed."""
    if not path.is_file():  # opening a pipe would wait for a writer
        path.stat()  # raises the usual error if the file does not exist
        raise ModelFileError("it is not a regular file")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ModelFileError("it is not a treegram model file")
        data = memoryview(MAGIC + file.read())
    end = len(data) - _DIGEST
    if end < _HEAD or hashlib.sha256(data[:end]).digest() != data[end:]:
        raise ModelFileError("it is damaged or incomplete: its digest does not match. Copy or save it again")
    start = _HEAD + int.from_bytes(data[len(MAGIC) : _HEAD], "little")
    if start > min(end, _HEAD + _max_text(len(data))):
        raise ModelFileError("its text is longer than allowed")
    content = json.loads(bytes(data[_HEAD:start]), parse_constant=_refuse_constant)
    number = content["format"] if isinstance(content, dict) else None
    if type(number) is not int or number < 1:
        raise ModelFileError("it does not name its format")
    if number > FORMAT:
        raise ModelFileError(f"it has format {number}, and this treegram reads formats up to {FORMAT}. Update treegram")
    return content, _read_arrays(data[start:end], content["arrays"])


def _max_text(n_bytes: int) -> int:
    return _TEXT_BYTES + n_bytes // _TEXT_FRACTION


def _refuse_constant(word: str) -> None:
    raise ModelFileError(f"its text has the number {word}, which is not finite")


def _check_array(name: str, shape: list[Any]) -> None:
    is_text = re.fullmatch("<U[1-9][0-9]{0,3}", name) is not None and int(name[2:]) <= _MAX_CHARACTERS
    if name not in _NUMBERS and not is_text:
        raise ModelFileError(f"an array of dtype {name!r} cannot be in a model file")
    is_valid = len(shape) <= 2 and all(type(n) is int and 0 <= n < 2**48 for n in shape)
    if not is_valid or (shape[:1] == [0] and shape[-1] > _MAX_COLUMNS):
        raise ModelFileError(f"an array of the shape {shape} cannot be in a model file")


def _read_arrays(data: memoryview, kinds: list[Any]) -> list[NDArray[Any]]:
    """Return the arrays with these dtypes and shapes, which must fill the data exactly."""
    arrays: list[NDArray[Any]] = []
    start = 0
    for name, shape in kinds:
        _check_array(name, shape)
        dtype = np.dtype(name)
        end = start + dtype.itemsize * math.prod(shape)
        if end > len(data):
            raise ModelFileError(f"array {len(arrays)} is longer than the file")
        block = data[start:end]
        if name == "|b1" and bytes(block).strip(b"\0\1"):
            raise ModelFileError("an array of True and False has other values")
        if dtype.kind == "U" and (np.frombuffer(block, "<u4") > 0x10FFFF).any():
            raise ModelFileError("an array of texts has characters that do not exist")
        values = np.frombuffer(block, dtype).reshape(shape)
        arrays.append(values.astype(dtype.newbyteorder("=")))  # an aligned copy, independent of the file
        start = end
    if start != len(data):
        raise ModelFileError(f"{len(data) - start} bytes are left over")
    return arrays
