"""Explanations as one HTML page that needs nothing else: ``_views`` has what it says, ``_drawings`` its pictures."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treegram._core.errors import ParameterError
from treegram._core.files import check_writable, replacing
from treegram._core.machine import package_versions
from treegram._core.text import counted
from treegram._core.types import Ints
from treegram.explanations.contributions import split_model
from treegram.explanations.page.render import PageContent, render_page
from treegram.explanations.page.views import read_views
from treegram.explanations.plots.molecules import molecule_of
from treegram.graphs import Graphs, as_graphs
from treegram.graphs.fields import graphs_digest
from treegram.kernels import FeatureMap, ODDCLFeatures
from treegram.kernels.pipelines import split_pipeline

__all__ = ["write_explanation_page"]

N_SHOWN = 20


def write_explanation_page(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    y: ArrayLike | None = None,
    chosen: ArrayLike | None = None,
    spread: bool = False,
    molecules: Sequence[Any] | None = None,
    title: str = "Explained predictions",
    source: str = "",
) -> None:
    """Write predictions and their explanations as one HTML page.

    The page has a table of predictions and, for each graph, a picture with its nodes colored by what they add, the nodes and
    features that add most, the fitted graphs that speak for and against, and a check that the parts add up. It needs no
    network, runs nothing, and takes names and labels as text.

    Parameters
    ----------
    model : GraphSVC, GraphRidge, GraphGP or Pipeline
        A fitted model that :func:`explain` takes.
    X : Graphs or list of graphs
        The graphs, new or not. Where the model is a pipeline that takes molecules, give ``model[1:]`` and
        ``model[0].transform(molecules)``.
    path : str or path
        The file to write. A file that is there is replaced when all has gone well, and is unchanged otherwise.
    y : array-like of shape (n_graphs,), optional
        The true classes or numbers; by default those that the graphs carry, if any.
    chosen : array-like of int, optional
        Which graphs are on the page, by their numbers in X; by default the first 20.
    spread : bool, default=False
        Whether what a tree adds is shared by its nodes, as in :func:`explain`.
    molecules : sequence of RDKit molecules or str, optional
        For each graph in X its molecule, or SMILES: RDKit then draws it. Atoms must be the nodes, in their order.
    title : str, default="Explained predictions"
        Title of the page.
    source : str, default=""
        Where model and graphs are from, for the end of the page.

    Notes
    -----
    For two classes, decisions above 0 and red nodes speak for the second. For more, :class:`GraphSVC` decides between two
    classes at a time: the page has the decision between the predicted class and the next best.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from treegram import WLOA, GraphSVC, make_motifs, write_explanation_page
    >>> graphs, y, _ = make_motifs(20, random_state=0)
    >>> model = GraphSVC(WLOA(), grid={}, C=1, cv=2).fit(graphs, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_explanation_page(model, graphs, Path(folder) / "page.html", chosen=[0, 12], spread=True)
    ...     page = (Path(folder) / "page.html").read_text()
    >>> page.count("<article")
    2
    """
    target = Path(path)
    check_writable(target)
    graphs = as_graphs(X)
    numbers = _check_chosen(chosen, len(graphs))
    targets = graphs.targets if y is None else np.asarray(y)
    if targets is not None and targets.shape != (len(graphs),):
        raise ParameterError(f"y must have one entry per graph, shape ({len(graphs)},); got shape {targets.shape}.")
    drawn = None if molecules is None else _check_molecules(molecules, graphs, numbers)
    views = read_views(model, graphs, numbers, targets, spread=spread)
    _warn_of_unknown_classes(model, targets, numbers)
    _, rows, final = split_model(model)
    fitted = (
        None if isinstance(rows, FeatureMap | ODDCLFeatures) else split_pipeline((rows or final).kernel_)[1].graphs_
    )
    facts = _facts(model, graphs, fitted, source)
    content = PageContent(title, len(graphs), views, drawn, fitted, facts, is_spread=spread)
    with replacing(target) as file:
        file.write(render_page(content).encode())


def _check_chosen(chosen: ArrayLike | None, n_graphs: int) -> Ints:
    if not n_graphs:
        raise ParameterError("X must have at least one graph to explain; it has none.")
    if chosen is None:
        return np.arange(min(n_graphs, N_SHOWN))
    numbers = np.asarray(chosen)
    if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
        raise ParameterError(f"chosen must be a list of whole numbers of graphs, at least one; got {chosen!r}.")
    outside = numbers[(numbers < 0) | (numbers >= n_graphs)]
    if len(outside):
        raise ParameterError(
            f"chosen must have numbers of graphs from 0 to {n_graphs - 1}; got {int(outside[0])}, and X has "
            f"{counted(n_graphs, 'graph')}."
        )
    _, firsts = np.unique(numbers, return_index=True)
    return numbers[np.sort(firsts)].astype(np.int64)


def _warn_of_unknown_classes(model: Any, targets: NDArray[Any] | None, numbers: Ints) -> None:
    if targets is None or not hasattr(model, "classes_"):
        return
    known = model.classes_.tolist()
    unknown = [one for one in dict.fromkeys(targets[numbers].tolist()) if one not in set(known)]
    if unknown:
        warnings.warn(
            f"y has {'a class' if len(unknown) == 1 else 'classes'} that the model was never fitted on, so that all predictions of "
            f"such graphs are wrong: {_some(unknown)}; it was fitted on {_some(known)}.",
            UserWarning,
            stacklevel=3,
        )


def _some(classes: list[Any]) -> str:
    return ", ".join(repr(one) for one in classes[:5]) + ", ..." * (len(classes) > 5)


def _check_molecules(molecules: Sequence[Any], graphs: Graphs, numbers: Ints) -> list[Any]:
    if len(molecules) != len(graphs):
        raise ParameterError(f"molecules must have one entry per graph, {len(graphs)}; it has {len(molecules)}.")
    return [molecule_of(molecules[n], graphs[n], f"molecules[{n}]") for n in numbers.tolist()]


def _facts(model: Any, graphs: Graphs, fitted: Graphs | None, source: str) -> list[tuple[str, str]]:
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    facts = [("source", source)] if source else []
    facts.append(("model", " ".join(repr(model).split())))
    final = split_model(model)[-1]
    if hasattr(final, "best_params_"):
        chosen = (f"{k} = {v:.6g}" if isinstance(v, float) else f"{k} = {v}" for k, v in final.best_params_.items())
        facts += [("kernel", " ".join(repr(final.kernel_).split())), ("chosen", ", ".join(chosen))]
    if fitted is not None:
        facts.append(("fitted graphs", f"{len(fitted):,}, SHA-256 {graphs_digest(fitted)}"))
    facts.append(("explained graphs", f"from {len(graphs):,}, SHA-256 {graphs_digest(graphs)}"))
    return [*facts, ("versions", versions)]
