"""The parts of a study: kernels with their parameter grids, data sets, folds, seeds and, for a paper, its published numbers.

A study can be built directly in Python, or read from a TOML file by ``study_file``; keys of the file are the fields of
these classes. ``study_file.check_study`` checks both.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from treegram._core.text import suggest
from treegram.exceptions import StudyError

# What outer folds keep together.
SPLITS = {"groups": "graphs of one group", "scaffold": "molecules with the same Bemis-Murcko scaffold"}


@dataclass(frozen=True)
class KernelSpec:
    """One kernel, or a sum of kernels, with the values that inner cross-validation chooses from."""

    kernel: str = ""  # a key of treegram.kernels.registry.KERNELS, or "auto"; empty for a sum
    parameters: Mapping[str, Any] = field(default_factory=dict)  # fixed
    param_grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # values in order of preference
    attributes: tuple[str, ...] = ()  # names of transformations of the graphs, applied in order before the kernel
    sum: tuple[KernelSpec, ...] = ()  # the terms of a sum; param_grid is set in each of them

    @property
    def terms(self) -> Sequence[KernelSpec]:
        """The terms of a sum, or the kernel itself."""
        return self.sum or (self,)


@dataclass(frozen=True)
class Published:
    """Numbers that a paper prints for one kernel, by data set."""

    accuracy: Mapping[str, float | str] = field(default_factory=dict)  # percent, or text such as "out of memory"
    deviation: Mapping[str, float] = field(default_factory=dict)  # standard deviation over repeats, percent
    seconds: Mapping[str, float] = field(default_factory=dict)  # of one Gram matrix


@dataclass(frozen=True)
class StudyEntry:
    """One row of the study's table: the kernels that inner cross-validation chooses from, or an estimator of graphs."""

    name: str
    choices: tuple[KernelSpec, ...] = ()  # empty for an estimator
    timed: Mapping[str, Any] = field(default_factory=dict)  # parameters for the time of one Gram matrix
    note: str = ""
    published: Published = field(default_factory=Published)
    fitted_on: str = ""  # overrides the protocol's unless empty
    datasets: tuple[str, ...] = ()  # a subset of the study's; empty: all
    # Instead of choices: a scikit-learn estimator of graphs, the name of a registered one, or "module:name".
    estimator: Any = None
    repeats: int | None = None  # upper limit, for expensive entries
    reseed: bool = False  # set random_state to the number of the repeat, so that means also average over draws

    def is_for(self, dataset: str) -> bool:
        """Return True if the entry is run on this data set of the study."""
        return not self.datasets or dataset in self.datasets

    @property
    def is_auto(self) -> bool:
        """True if the entry is the kernel "auto"."""
        return [spec.kernel for spec in self.choices] == ["auto"]

    @property
    def chooses_itself(self) -> bool:
        """True if the study does not list the choices: an estimator, or the kernel "auto"."""
        return self.estimator is not None or self.is_auto


@dataclass(frozen=True)
class Protocol:
    """The cross-validation by which the kernels are compared."""

    repeats: int = 10
    outer_folds: int = 10
    inner_folds: int = 10
    seed: int = 0
    C: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)  # of a support vector machine
    # The graphs that scales, widths and samples are learned from: the "training" graphs of the outer fold, or "all".
    fitted_on: str = "training"
    task: str = "classification"  # or "regression"
    alpha: tuple[float, ...] = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)  # of ridge regression
    min_class_size: int = 1  # graphs of smaller classes are left out
    metric: str = ""  # the tested score; empty: the first one for the task
    # "balanced": every model weights its graphs so that all classes weigh the same, and chooses by balanced accuracy.
    class_weight: str = ""
    split: str = ""  # what outer folds keep together, a key of SPLITS; empty: nothing
    repeats_on: Mapping[str, int] = field(default_factory=dict)  # upper limit by data set

    @property
    def strengths(self) -> tuple[str, tuple[float, ...]]:
        """The name of the model's regularization parameter, and its values in the model's order."""
        if self.task == "regression":
            return "alpha", tuple(sorted(self.alpha, reverse=True))
        return "C", tuple(sorted(self.C))


@dataclass(frozen=True)
class Comparison:
    """A set of kernels and data sets on which a Friedman test is run."""

    name: str
    kernels: tuple[str, ...]
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two kernels that are compared data set by data set."""

    kernel: str
    baseline: str | tuple[str, ...]  # of several, the one with the best mean on each data set
    datasets: tuple[str, ...]

    @property
    def baselines(self) -> tuple[str, ...]:
        """The baselines as a tuple, even if there is only one."""
        return (self.baseline,) if isinstance(self.baseline, str) else tuple(self.baseline)


@dataclass(frozen=True)
class Study:
    """A whole study, as `treegram.study.read_study` returns it, or built directly.

    Examples
    --------
    >>> from treegram.study import Study
    >>> from treegram.study.protocol import KernelSpec, Protocol, StudyEntry
    >>> wl = StudyEntry("wl", (KernelSpec("wl", param_grid={"n_iterations": (0, 1, 2)}),))
    >>> study = Study("mine", ("MUTAG",), (wl,), Protocol(repeats=1))
    """

    name: str
    datasets: tuple[str, ...]
    kernels: tuple[StudyEntry, ...]
    protocol: Protocol = field(default_factory=Protocol)
    title: str = ""  # of the report
    about: str = ""  # a paragraph for the report
    reference: str = ""
    remarks: tuple[str, ...] = ()  # notes below the table of accuracies
    comparisons: tuple[Comparison, ...] = ()
    pairs: tuple[Pair, ...] = ()
    dataset_notes: Mapping[str, str] = field(default_factory=dict)
    source: str = field(default="", compare=False, repr=False)  # the file it was read from

    @property
    def text(self) -> str:
        """The text of the study's file, or the study as JSON if it was built in Python."""
        return self.source or json.dumps(as_table(self), ensure_ascii=False, indent=1)

    @property
    def digest(self) -> str:
        """SHA-256 of the text; for a file, as ``sha256sum`` computes it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def repeats_of(self, entry: StudyEntry, dataset: str) -> int:
        """Return the number of repeats planned for an entry on a data set; 0 if the entry is for other data sets."""
        if not entry.is_for(dataset):
            return 0
        most = self.protocol.repeats
        return min(most, entry.repeats or most, self.protocol.repeats_on.get(dataset, most))

    def part(
        self,
        datasets: Collection[str] | None = None,
        kernels: Collection[str] | None = None,
        repeats: int | None = None,
    ) -> Study:
        """Return the study with these data sets, kernels and first repeats only; the text of its file stays."""
        names = [entry.name for entry in self.kernels]
        for requested, existing, noun in ((datasets, self.datasets, "data set"), (kernels, names, "kernel")):
            for name in requested or ():
                if name not in existing:
                    hint = suggest(name, existing) or "."
                    raise StudyError(
                        f"The study {self.name} has no {noun} {name!r}; it has {', '.join(existing)}{hint}"
                    )
        planned = self.protocol.repeats
        if repeats is not None and not 1 <= repeats <= planned:
            raise StudyError(
                f"The number of repeats must be between 1 and {planned}, which the study {self.name} has; got {repeats}."
            )
        return replace(
            self,
            datasets=tuple(name for name in self.datasets if datasets is None or name in datasets),
            kernels=tuple(entry for entry in self.kernels if kernels is None or entry.name in kernels),
            protocol=replace(self.protocol, repeats=repeats or planned),
        )


def shipped_studies() -> tuple[str, ...]:
    """Return the names of the studies that come with the package."""
    files = resources.files("treegram.study").joinpath("papers").iterdir()
    return tuple(sorted(Path(file.name).stem for file in files if file.name.endswith(".toml")))


# -------------------------------------------------------------------- as plain data


def as_table(part: Any) -> Any:
    """Return a part of a study as in a study file: tables, lists, strings and numbers, without defaults."""
    if hasattr(part, "get_params"):
        return estimator_text(part)
    if is_dataclass(part):
        content = changed_fields(part)
        if isinstance(part, Study):
            del content["name"]  # it is the file's name
        return {name: as_table(value) for name, value in content.items()}
    if isinstance(part, Mapping):
        return {name: as_table(value) for name, value in part.items()}
    return list(map(as_table, part)) if isinstance(part, tuple | list) else part


def estimator_text(estimator: Any) -> str:
    """Return the name of an estimator, or its class and the parameters that differ from their defaults; empty for None."""
    if estimator is None:
        return ""
    return estimator if isinstance(estimator, str) else _spell(estimator)


def _spell(value: Any) -> str:
    """Spell out a parameter of an estimator; scikit-learn's ``repr`` shortens long values, so that different ones look the same."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_spell, value))}]"
    if not hasattr(value, "get_params") or isinstance(value, type):
        return " ".join(repr(value.tolist() if hasattr(value, "tolist") else value).split())
    changed = (f"{name}={_spell(parameter)}" for name, parameter in changed_parameters(value).items())
    return f"{type(value).__module__}.{type(value).__qualname__}({', '.join(changed)})"


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that differ from their defaults, without ``n_jobs``, which changes no result."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(type(estimator)).parameters.items()}
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name != "n_jobs"}
    return {name: value for name, value in parameters.items() if _spell(value) != _spell(defaults.get(name))}


def changed_fields(part: Any) -> dict[str, Any]:
    """Return the fields of a part of a study that differ from their defaults."""
    content: dict[str, Any] = {}
    for spec in fields(part):
        default = spec.default if spec.default_factory is MISSING else spec.default_factory()
        if spec.compare and getattr(part, spec.name) != default:
            content[spec.name] = getattr(part, spec.name)
    return content


def entry_key(study: Study, entry: StudyEntry, dataset: str) -> str:
    """Return 16 hexadecimal digits that identify everything that determines an entry's results on a data set.

    Equal keys mean equal rows: the key covers the choices, the folds, the seed, the task and the values of C or alpha, and
    nothing else. A new entry, another data set, more repeats, a note or another name does not change it; a changed grid does.
    """
    protocol = study.protocol
    name, values = protocol.strengths
    content = {
        "dataset": dataset,
        "choices": [_content(spec) for spec in entry.choices],
        "baseline": estimator_text(entry.estimator),  # the name of this field in old keys
        "reseed": entry.reseed,
        "outer_folds": protocol.outer_folds,
        "inner_folds": protocol.inner_folds,
        "seed": protocol.seed,
        "fitted_on": entry.fitted_on or protocol.fitted_on,
        name: values,
        "min_class_size": protocol.min_class_size if protocol.task == "classification" else 1,
        "control": "",  # a field that is gone; keys of old results have it
        # A new field must not change old keys.
        **({"split": protocol.split} if protocol.split else {}),
        **({"class_weight": protocol.class_weight} if protocol.class_weight else {}),
    }
    words = json.dumps(_canonical(content), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _content(spec: KernelSpec) -> dict[str, Any]:
    """Return a kernel as JSON, without defaults, so that a new field changes no old key."""
    content = as_table(spec)
    # Pairs, because their order matters: ties go to the first point of a grid.
    grid = {"param_grid": [[name, values] for name, values in spec.param_grid.items()]} if spec.param_grid else {}
    return {**content, **grid, **({"sum": [_content(term) for term in spec.sum]} if spec.sum else {})}


def _canonical(value: Any) -> Any:
    """Return a canonical form of a value: 1.0 becomes 1."""
    if isinstance(value, Mapping):
        return {name: _canonical(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_canonical(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
