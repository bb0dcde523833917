"""Kernels by the names that they have in models, studies and the command line."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, TypeVar

from treegram._core.text import suggest
from treegram.exceptions import ParameterError

ENTRY_POINTS = "treegram.kernels"  # the group in which installed packages list their kernels, by name
AUTO = "auto"  # in place of a kernel's name: models choose among candidates of their own
PRECOMPUTED = "precomputed"  # in place of a kernel's name: models take Gram matrices


class _Registry(dict[str, type[Any]]):
    """Kernels by name; a name that is missing may be an entry point of an installed package, which is then loaded."""

    def __missing__(self, name: str) -> type[Any]:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            kernel = entry.load()
            if not (isinstance(kernel, type) and hasattr(kernel, "gram_grid") and getattr(kernel, "name", "") == name):
                raise ParameterError(
                    f"The entry point {entry.value!r} must be a subclass of GraphKernel whose name is {name!r}; got {kernel!r}."
                )
            return register_kernel(kernel)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or bool(entry_points(group=ENTRY_POINTS, name=str(name)))


KERNELS = _Registry()  # by the names that kernels have in models, studies and the command line
Kernel = TypeVar("Kernel", bound=type[Any])


def kernel_by_name(name: str) -> Any:
    """Return the kernel of this name, with its default parameters."""
    if name not in KERNELS:
        raise ParameterError(
            f"kernel {name!r} is unknown{suggest(name, KERNELS) or '. Known are ' + ', '.join(KERNELS)}"
        )
    return KERNELS[name]()


def register_kernel(kernel: Kernel) -> Kernel:
    """Make a kernel known to models, studies and the command line by its ``name``; can be used as a decorator.

    A package can also list its kernels in the entry point group ``treegram.kernels``: they are loaded when their name is used.

    Parameters
    ----------
    kernel : subclass of GraphKernel
        The kernel, with a ``name`` that no other kernel has.

    Returns
    -------
    subclass of GraphKernel
        The same class.
    """
    if kernel.name in ("", AUTO, PRECOMPUTED):
        raise ParameterError(
            f"name of {kernel.__name__} must be a word other than {AUTO!r} and {PRECOMPUTED!r}; got {kernel.name!r}."
        )
    if KERNELS.setdefault(kernel.name, kernel) is not kernel:
        raise ParameterError(f"name of {kernel.__name__} is that of {KERNELS[kernel.name].__name__}: {kernel.name!r}.")
    return kernel
