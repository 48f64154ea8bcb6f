"""Files that are written at once, and archives of arrays that claim no more memory than they have."""

import io
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from pdofm.errors import FileError


def in_folder(path: str | PathLike) -> Path:
    """The path of a file to write, in a folder that must be there: one that is misspelled is not made silently."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileError(
            f"There is no folder {str(target.parent)!r} to write {target.name!r} to. Make it first: "
            f"pathlib.Path({str(target.parent)!r}).mkdir(parents=True)."
        )
    return target


def write(path: str | PathLike, content: bytes) -> None:
    """Write a regular file at once: an interrupted call leaves an old file intact, and nothing else behind."""
    if not isinstance(path, str | PathLike):
        raise FileError(f"A file is written to a path; got {type(path).__name__}. Give a text, or a pathlib.Path.")
    target = in_folder(path)
    if target.is_symlink() or (target.exists() and not target.is_file()):
        kind = "a link" if target.is_symlink() else "a folder" if target.is_dir() else "not a regular file"
        raise FileError(f"{str(path)!r} is {kind}, which is not written to. Give the path of a file.")
    partial = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with partial.open("xb") as file:  # fails if something, such as a link, has the name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror}. Choose another place.") from error
    finally:
        partial.unlink(missing_ok=True)


def packed(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """An archive of named arrays with a header."""
    buffer = io.BytesIO()
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(buffer, header=text, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpacked(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of an archive. Anything else raises ValueError, before memory is taken for it."""
    arrays = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED or not member.filename.endswith(".npy"):
                    raise ValueError(f"{member.filename[:100]!r} is not an array that this package wrote")
                arrays[member.filename[:-4]] = _array(archive.read(member))
        header = json.loads(arrays.pop("header").tobytes())
    except (
        OSError,
        EOFError,
        LookupError,
        TypeError,
        NotImplementedError,
        RecursionError,
        zipfile.BadZipFile,
    ) as error:
        raise ValueError(repr(error)) from error
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    return header, arrays


def _array(content: bytes) -> np.ndarray:
    """An array in the format of NumPy, which must be as long as it says."""
    file = io.BytesIO(content)
    np.lib.format.read_magic(file)
    shape, _, kind = np.lib.format.read_array_header_1_0(file)
    size = kind.itemsize
    for n in shape:
        size *= max(n, 0)
    if kind.hasobject or file.tell() + size != len(content):
        raise ValueError(f"an array of shape {shape} and type {kind} does not fit into its file")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
