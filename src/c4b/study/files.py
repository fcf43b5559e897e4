"""Study files: TOML in, a ``Study`` out. Every error names file, key and remedy."""

from __future__ import annotations

import itertools
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from c4b import _validate
from c4b.errors import InvalidInput
from c4b.study import candidates
from c4b.study.plan import Method, Setting, Study

SECTIONS: dict[str, dict[str, str]] = {
    "truth": {"theta": "theta", "baseline": "baseline", "sigma": "sigma", "noise": "noise"},
    "history": {"kind": "history", "size": "history_size"},
    "candidates": {"generator": "generator", "count": "count", "rho": "rho", "source": "source"},
    "learner": {
        "alpha": "alpha",
        "delta": "delta",
        "ridge": "ridge",
        "norm_bound": "norm_bound",
        "confidence": "confidence",
        "assumed_sigma": "assumed_sigma",
        "reserve": "reserve",
    },
    "deployment": {"rounds": "rounds"},
}
"""Section -> key in the file -> field of ``Setting``."""
TOP = ("name", "title", "episodes", "seed", "methods")
VECTORS = ("theta", "baseline")
METHOD_KEYS = ("label", "policy", "confidence", "after_forced_phase")


class StudyFileError(InvalidInput):
    """A study file that cannot be used."""


def shipped() -> list[str]:
    """Names of the studies inside the package."""
    folder = resources.files("c4b.study") / "studies"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(path: str | Path) -> Study:
    """Read a study from a file, or one inside the package by its name (for example ``paper``)."""
    if str(path) in shipped():
        text = (resources.files("c4b.study") / "studies" / f"{path}.toml").read_text()
        return parse(text, str(path), Path.cwd())
    file = Path(path)
    if not file.is_file():
        known = ", ".join(shipped())
        raise StudyFileError("study", str(path), f"is no file and no shipped study ({known})")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyFileError("study", str(path), f"cannot be read: {error}") from error
    return parse(text, str(path), file.parent)


def parse(text: str, where: str, folder: Path) -> Study:
    """``where`` names the file in errors; ``folder`` is where its relative paths start."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyFileError(where, "not TOML", str(error)) from error
    _known(where, "", document, (*TOP, *SECTIONS))
    axes = _axes(where, document, folder)
    swept = [field for field, values in axes.items() if len(values) > 1]
    settings = []
    for values in itertools.product(*axes.values()):
        fields = dict(zip(axes, values, strict=True))
        try:
            setting = Setting(**fields)
            candidates.check(setting)
        except InvalidInput as error:
            raise _named(where, error) from error
        settings.append(setting)
    try:
        return Study(
            str(document.get("name", Path(where).stem)),
            str(document.get("title", document.get("name", Path(where).stem))),
            tuple(_methods(where, document.get("methods"))),
            tuple(settings),
            tuple(swept),
            document.get("episodes", 256),
            document.get("seed", 0),
        )
    except InvalidInput as error:
        raise _named(where, error) from error


def _axes(where: str, document: dict[str, Any], folder: Path) -> dict[str, list[Any]]:
    """Field of ``Setting`` -> the values it takes; a list in the file is a sweep."""
    axes: dict[str, list[Any]] = {}
    values: list[Any]
    for section, content in document.items():
        if section in TOP:
            continue
        if not isinstance(content, dict):
            raise StudyFileError(f"{where}: {section}", content, f"must be a section [{section}]")
        _known(where, section, content, SECTIONS[section])
        for key, value in content.items():
            field = SECTIONS[section][key]
            if field in VECTORS:
                many = isinstance(value, list) and value and isinstance(value[0], list)
                values = [_vector(where, f"{section}.{key}", v) for v in (value if many else [value])]
            else:
                values = value if isinstance(value, list) else [value]
            if not values:
                raise StudyFileError(f"{where}: {section}.{key}", value, "give at least one value")
            if field == "source":
                generator = document.get("candidates", {}).get("generator")
                values = [str(folder / str(v)) if generator == "file" else str(v) for v in values]
            for v in values:
                if values.count(v) > 1:
                    raise StudyFileError(f"{where}: {section}.{key}", v, "appears twice in the sweep")
            axes[field] = [float(v) if isinstance(v, int) and _is_real(field) else v for v in values]
    return axes


def _is_real(field: str) -> bool:
    return field not in ("count", "rounds", "history_size")


def _vector(where: str, key: str, value: Any) -> tuple[float, ...]:
    numbers = isinstance(value, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )
    if not numbers or not value:
        raise StudyFileError(f"{where}: {key}", value, "must be a list of numbers")
    return tuple(float(v) for v in value)


def _methods(where: str, value: Any) -> list[Method]:
    if not isinstance(value, list) or not value:
        raise StudyFileError(f"{where}: methods", value, 'list at least one, e.g. ["refresh"]')
    methods = []
    for entry in value:
        if isinstance(entry, str):
            entry = {"policy": entry}  # noqa: PLW2901 (the short form of the same thing)
        if not isinstance(entry, dict) or "policy" not in entry:
            raise StudyFileError(
                f"{where}: methods", entry, 'must be a name or {policy = "…", label = "…"}'
            )
        _known(where, "methods", entry, METHOD_KEYS)
        label = entry.get("label", entry["policy"])
        try:
            late = _validate.boolean("after_forced_phase", entry.get("after_forced_phase", False))
            methods.append(Method(str(label), entry["policy"], entry.get("confidence"), late))
        except InvalidInput as error:
            raise _named(where, error) from error
    return methods


def _known(where: str, section: str, content: dict[str, Any], keys: Any) -> None:
    for key, value in content.items():
        if key not in keys:
            place = f"{where}: {section}.{key}" if section else f"{where}: {key}"
            raise StudyFileError(place, value, "unknown key; known are " + ", ".join(keys))


def _named(where: str, error: InvalidInput) -> StudyFileError:
    """The same complaint with the file and, where there is one, the key as the file spells it."""
    argument = error.argument
    for section, keys in SECTIONS.items():
        for key, field in keys.items():
            if argument == field or argument.startswith(f"{field}["):
                argument = f"{section}.{key}{argument[len(field) :]}"
                break
        else:
            continue
        break
    named = StudyFileError(f"{where}: {argument}", None, error.remedy)
    named.shown = error.shown
    named.args = (f"{where}: {argument} = {error.shown}: {error.remedy}",)
    return named
