"""A kernel with transformers before it: a scikit-learn pipeline whose steps give graphs, and whose last step is a kernel."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from treegram._core.errors import ParameterError

__all__ = ["learns_from_data", "split_pipeline"]


def split_pipeline(kernel: Any, what: str = "kernel") -> tuple[list[Any], Any]:
    """The transformers before a kernel, and the kernel itself; ``what`` is what an error calls it."""
    steps, final = [], kernel
    while isinstance(final, Pipeline):
        *before, final = (step for _, step in final.steps)
        steps += [step for step in before if step is not None and step != "passthrough"]
    if isinstance(final, type) or not hasattr(final, "_grid_pass"):
        raise ParameterError(
            f"{what} must be a graph kernel, or a pipeline of transformers that ends in one; got {kernel!r}."
        )
    return steps, final


def learns_from_data(kernel: Any) -> bool:
    """Whether a kernel or a transformer before it must be fitted inside each fold; one that does not say counts as such."""
    steps, final = split_pipeline(kernel)
    return any(getattr(step, "learns_from_data", True) for step in [*steps, final])
