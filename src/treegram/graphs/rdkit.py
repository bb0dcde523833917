"""The doors to RDKit: text in, molecules or the reason why not out. RDKit is imported only when it is used, and is kept quiet."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

__all__ = [
    "BadMoleculeError",
    "as_molecule",
    "embed",
    "import_rdkit",
    "is_molecule",
    "parse_record",
    "quiet",
    "refusals",
    "show",
]

_SHOWN = 60  # characters of a molecule in a message
_LONGEST_REASON = 200  # characters of RDKit's own text
_EMBEDDING_SECONDS = 120  # RDKit cannot be interrupted, and some molecules would take hours


class BadMoleculeError(Exception):
    """A molecule that cannot become a graph; the text says why, and the caller adds which one."""


def import_rdkit() -> Any:
    """``rdkit.Chem``, or an error that says how to get it."""
    try:
        from rdkit import Chem
    except ImportError as error:
        raise ImportError(
            "Molecules are read by RDKit, which is missing: pip install rdkit."
        ) from error
    return Chem


def quiet() -> contextlib.AbstractContextManager[Any]:
    """RDKit writes nothing to stderr."""
    import_rdkit()
    from rdkit import rdBase

    return rdBase.BlockLogs()


def is_molecule(value: Any) -> bool:
    """Whether it is a molecule of RDKit."""
    return isinstance(value, import_rdkit().Mol)


def show(molecule: Any) -> str:
    """The molecule in a message: its SMILES, cut if it is long."""
    text = molecule
    if is_molecule(molecule):
        with contextlib.suppress(Exception):  # a molecule that is wrong enough has no SMILES
            text = import_rdkit().MolToSmiles(molecule)
    shown = repr(text) if isinstance(text, str) else type(text).__name__
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """RDKit's errors about a molecule become a BadMoleculeError."""
    try:
        yield
    except (import_rdkit().MolSanitizeException, RuntimeError) as error:
        reason = " ".join(str(error).split())[:_LONGEST_REASON].rstrip(". ")
        raise BadMoleculeError(f"RDKit says: {reason}") from error


# -------------------------------------------------------------------- text in


def as_molecule(value: Any) -> Any:
    """The molecule of a SMILES, or the molecule of RDKit that it is; checked by RDKit, if need be as a copy."""
    if isinstance(value, str):
        return parse_smiles(value)
    if not is_molecule(value):
        raise BadMoleculeError(
            f"a SMILES or a molecule of RDKit is expected; got {value!r:.40} ({type(value).__name__})"
        )
    if not value.NeedsUpdatePropertyCache():
        return value
    chem = import_rdkit()
    copy = chem.Mol(value)
    with refusals():
        chem.SanitizeMol(copy)
    return copy


def parse_smiles(text: str) -> Any:
    """The molecule of a SMILES."""
    if not text.isprintable():  # RDKit would read what stands before a line break, and fail on half a character
        raise BadMoleculeError("the SMILES has a line break or another character that cannot be printed")
    with _captured() as log:
        mol = import_rdkit().MolFromSmiles(text)
    if mol is None:
        raise BadMoleculeError(_reason(log.messages))
    return mol


def parse_record(text: str) -> Any:
    """The molecule of one record of an SDF file, with its properties and coordinates, hydrogens included."""
    chem = import_rdkit()
    supplier = chem.SDMolSupplier()
    with _captured() as log:
        supplier.SetData(text, sanitize=True, removeHs=False)
        mol = next(iter(supplier), None)
    if mol is None:
        raise BadMoleculeError(_reason(log.messages))
    return mol


class _Silence(contextlib.AbstractContextManager["_Silence"]):
    """What stands in for RDKit's capture in versions that have none."""

    messages = ""

    def __exit__(self, *_: object) -> None:
        return None


def _captured() -> Any:
    """A context that takes what RDKit complains about."""
    from rdkit import rdBase

    return rdBase.CaptureErrorLog() if hasattr(rdBase, "CaptureErrorLog") else _Silence()


def _reason(messages: str) -> str:
    """RDKit's complaint in a few words: ``syntax error around position 3``."""
    lines = [re.sub(r"^\[[\d:]+\] *((SMILES Parse )?(Error|ERROR):)? *", "", line) for line in messages.splitlines()]
    first = next((line for line in lines if line), "")
    if not first:
        return "RDKit cannot read it"
    first = re.split(r" while parsing: | for input: ", first)[0].rstrip(". :")
    place = re.search(r"around position \d+", messages)
    return f"RDKit says: {first}{' ' + place.group() if place else ''}"


# -------------------------------------------------------------------- coordinates


def embed(mol: Any, seed: int) -> None:
    """Give a molecule with explicit hydrogens 3D coordinates by ETKDG; a second try starts from random ones."""
    from rdkit.Chem import rdDistGeom

    parameters: Any = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    parameters.trackFailures = True
    if hasattr(parameters, "timeout"):
        parameters.timeout = _EMBEDDING_SECONDS
    for parameters.useRandomCoords in (False, True):
        if rdDistGeom.EmbedMolecule(mol, parameters) >= 0:
            return
    counts = list(parameters.GetFailureCounts())
    causes = rdDistGeom.EmbedFailureCauses.values
    cause = f" ({causes[counts.index(max(counts))].name})" if any(counts) else ""
    raise BadMoleculeError(
        f"RDKit found no 3D coordinates{cause}: its rings or stereo centers may be impossible. Attributes that need coordinates can "
        "be left out, or an SDF file can bring them"
    )
