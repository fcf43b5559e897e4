"""Reads a study from a TOML file. Every error names the file, the key and the remedy."""

from __future__ import annotations

import itertools
import sys
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from c4b import _validate
from c4b.errors import InvalidInput
from c4b.policies.catalogue.composition import Composition
from c4b.study.spec.drawn_worlds import drawn_world
from c4b.study.spec.plan import Method, PythonGate, Study, imported
from c4b.study.spec.setting import Setting
from c4b.study.world import candidate_sources

_DATA = resources.files("c4b.study.spec")
SECTIONS: dict[str, dict[str, str]] = {
    "truth": {
        "theta": "theta",
        "baseline": "baseline",
        "baseline_spread": "baseline_spread",
        "baselines": "baselines",
        "sigma": "sigma",
        "noise": "noise",
    },
    "history": {"kind": "history", "size": "history_size"},
    "candidates": {
        "generator": "generator",
        "count": "count",
        "rho": "rho",
        "correlation": "correlation",
        "listing": "listing",
        "source": "source",
    },
    "learner": {
        "alpha": "alpha",
        "delta": "delta",
        "ridge": "ridge",
        "norm_bound": "norm_bound",
        "confidence": "confidence",
        "assumed_sigma": "assumed_sigma",
        "misspecification": "misspecification",
        "reserve": "reserve",
        "told_mean_error": "told_mean_error",
        "baseline_floor": "baseline_floor",
    },
    "deployment": {"rounds": "rounds"},
}
"""Sections of a study file: each key and the field of ``Setting`` that it sets."""
TOP_LEVEL = ("name", "title", "episodes", "seed", "methods", "worlds", "drawn_worlds")
WHOLE_NUMBERS = ("count", "rounds", "history_size")
VECTORS = ("theta", "baseline")
COMPOSITION_KEYS = (
    "certificate", "ledger", "selection", "score", "latches", "learns", "earned", "phase",
)  # fmt: skip
METHOD_KEYS = (
    "label",
    "policy",
    "factory",
    "gated",
    "confidence",
    "after_forced_phase",
    "worlds",
    *COMPOSITION_KEYS,
)
ONE_OF = ("policy", "ledger", "factory")
"""A method is a policy's name, its parts, or a function that makes a gate in Python."""


class StudyFileError(InvalidInput):
    """A study file is invalid."""


def shipped() -> list[str]:
    """Names of the studies that the package contains."""
    entries = (_DATA / "studies").iterdir()
    return sorted(entry.name[:-5] for entry in entries if entry.name.endswith(".toml"))


def example() -> str:
    """A commented study file as a starting point."""
    return (_DATA / "example_study.toml").read_text(encoding="utf-8")


def load(path: str | Path, seed: int | None = None) -> Study:
    """Read a study from a file, or a study of the package by its name (for example ``paper``).

    ``seed`` replaces the seed in the file; randomly drawn worlds depend on it.
    """
    if str(path) in shipped():
        text = (_DATA / "studies" / f"{path}.toml").read_text(encoding="utf-8")
        return parse(text, str(path), Path.cwd(), seed)
    file = Path(path)
    if not file.is_file():
        known = ", ".join(shipped())
        raise StudyFileError("study", str(path), f"is no file and no shipped study ({known})")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyFileError("study", str(path), f"cannot be read: {error}") from error
    return parse(text, str(path), file.parent, seed)


def parse(text: str, where: str, folder: Path, seed: int | None = None) -> Study:
    """Read a study from TOML text.

    ``where`` names the file in errors; relative paths start at ``folder``.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyFileError(where, "not TOML", f"mend the syntax: {error}") from error
    _check_keys(where, "", document, (*TOP_LEVEL, *SECTIONS))
    name = _text(where, "name", document.get("name", Path(where).stem))
    seed = document.get("seed", 0) if seed is None else seed
    axes = _axes(where, document, folder)
    worlds = _worlds(where, document, axes, folder)
    drawn = document.get("drawn_worlds", 0)
    try:
        _validate.count("drawn_worlds", drawn, 0, "must be a whole number of at least 0")
        _validate.count("seed", seed, 0, "must be a whole number of at least 0")
    except InvalidInput as error:
        raise _with_file(where, error) from error
    methods = _methods(where, document.get("methods"), folder)
    only = _only_in(
        where, document["methods"], methods, [world.get("world", [""])[0] for world in worlds]
    )
    for world in worlds:
        world["methods"] = [_players(methods, only, world.get("world", [""])[0])]
    settings = [setting for world in worlds for setting in _settings(where, world)]
    players = _players(methods, only, "drawn")
    settings += [replace(drawn_world(seed, n), methods=players) for n in range(1, drawn + 1)]
    named = "worlds" in document or drawn > 0
    swept = ["world"] if named else [field for field, values in axes.items() if len(values) > 1]
    try:
        return Study(
            name,
            _text(where, "title", document.get("title", name)),
            tuple(methods),
            tuple(settings),
            tuple(swept),
            document.get("episodes", 256),
            seed,
        )
    except InvalidInput as error:
        raise _with_file(where, error) from error


def _settings(where: str, axes: dict[str, list[Any]]) -> list[Setting]:
    """Every combination of values; in a world with several of them, its name says which."""
    several = [field for field, values in axes.items() if len(values) > 1]
    settings = []
    for values in itertools.product(*axes.values()):
        fields = dict(zip(axes, values, strict=True))
        if "world" in fields and several:
            values_in_name = (f"{field} {fields[field]}" for field in several)
            fields["world"] = ", ".join([fields["world"], *values_in_name])
        try:
            setting = Setting(**fields)
            candidate_sources.check(setting)
        except InvalidInput as error:
            raise _with_file(where, error) from error
        settings.append(setting)
    return settings


def _worlds(
    where: str, document: dict[str, Any], axes: dict[str, list[Any]], folder: Path
) -> list[dict[str, list[Any]]]:
    """The values that each world takes: the file's sections, then the world's own in their place."""
    entries = document.get("worlds")
    if entries is None:
        return [] if document.get("drawn_worlds") else [axes]
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise StudyFileError(f"{where}: worlds", entries, "must be tables [[worlds]]")
    worlds = []
    for number, entry in enumerate(entries):
        own = {key: value for key, value in entry.items() if key != "name"}
        _check_keys(where, f"worlds[{number}]", entry, ("name", *SECTIONS))
        name = _text(where, f"worlds[{number}].name", entry.get("name"))
        worlds.append({**axes, **_axes(where, own, folder), "world": [name]})
    names = [world["world"][0] for world in worlds]
    for name in names:
        if names.count(name) > 1:
            raise StudyFileError(f"{where}: worlds.name", name, "appears twice")
    return worlds


def _axes(where: str, document: dict[str, Any], folder: Path) -> dict[str, list[Any]]:
    """The values that each field of ``Setting`` takes; a list in the file is a sweep."""
    axes: dict[str, list[Any]] = {}
    values: list[Any]
    for section, content in document.items():
        if section in TOP_LEVEL:
            continue
        if not isinstance(content, dict):
            raise StudyFileError(f"{where}: {section}", content, f"must be a section [{section}]")
        _check_keys(where, section, content, SECTIONS[section])
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
                values = [_source(f"{where}: {section}.{key}", v, content, folder) for v in values]
            if field == "baselines":
                values = [_file(f"{where}: {section}.{key}", v, folder) for v in values]
            for v in values:
                if values.count(v) > 1:
                    raise StudyFileError(f"{where}: {section}.{key}", v, "appears twice in the sweep")
            axes[field] = [
                float(v) if type(v) is int and field not in WHOLE_NUMBERS else v for v in values
            ]
    return axes


def _file(argument: str, value: Any, folder: Path) -> str:
    """A path relative to the study file."""
    if not isinstance(value, str) or not value:
        raise StudyFileError(argument, value, "must be the path of a file")
    return str((folder / value).resolve())


def _source(argument: str, value: Any, section: dict[str, Any], folder: Path) -> str:
    """A path relative to the study file, or a function of a module that may lie beside it."""
    if not isinstance(value, str) or not value:
        raise StudyFileError(argument, value, "must be the path of a file or 'module:function'")
    if section.get("generator") in ("file", ["file"]):
        return str((folder / value).resolve())
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
    return value


def _text(where: str, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise StudyFileError(f"{where}: {key}", value, "must be a text, in quotes")
    return value


def _vector(where: str, key: str, value: Any) -> tuple[float, ...]:
    numbers = isinstance(value, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )
    if not numbers or not value:
        raise StudyFileError(f"{where}: {key}", value, "must be a list of numbers")
    return tuple(float(v) for v in value)


def _methods(where: str, value: Any, folder: Path) -> list[Method]:
    if not isinstance(value, list) or not value:
        raise StudyFileError(f"{where}: methods", value, 'list at least one, e.g. ["refresh"]')
    methods = []
    for entry in value:
        if isinstance(entry, str):
            entry = {"policy": entry}  # noqa: PLW2901 (the short form of the same thing)
        if not isinstance(entry, dict) or sum(key in entry for key in ONE_OF) != 1:
            remedy = (
                'must be a name, {policy = "…", label = "…"}, {label = "…", ledger = "…", …} '
                'or {label = "…", factory = "module:function"}'
            )
            raise StudyFileError(f"{where}: methods", entry, remedy)
        _check_keys(where, "methods", entry, METHOD_KEYS)
        label = _text(where, "methods.label", entry.get("label", entry.get("policy")))
        try:
            late = _validate.boolean("after_forced_phase", entry.get("after_forced_phase", False))
            own = _gate(label, entry, folder) if "factory" in entry else _composition(label, entry)
            methods.append(Method(label, entry.get("policy", label), entry.get("confidence"), late, own))
        except InvalidInput as error:
            raise _with_file(where, error, {key: f"methods.{key}" for key in METHOD_KEYS}) from error
    return methods


def _only_in(
    where: str, entries: list[Any], methods: list[Method], known: list[str]
) -> dict[str, list[str]]:
    """Label -> the worlds that a method is made for, of methods that name some."""
    only = {}
    for entry, method in zip(entries, methods, strict=True):
        if isinstance(entry, dict) and "worlds" in entry:
            named = entry["worlds"]
            if not isinstance(named, list) or not named or not {*map(str, named)} <= {*known}:
                remedy = f"must list names of worlds: {', '.join(known)}"
                raise StudyFileError(f"{where}: methods.worlds", named, remedy)
            only[method.label] = named
    return only


def _players(methods: list[Method], only: dict[str, list[str]], world: str) -> tuple[str, ...]:
    """Labels of the methods that play in a world; none if all do."""
    labels = tuple(m.label for m in methods if world in only.get(m.label, [world]))
    return labels if len(labels) < len(methods) else ()


def _gate(label: str, entry: dict[str, Any], folder: Path) -> PythonGate:
    """A gate in Python that a function makes, of a module that may lie beside the study file."""
    for key in COMPOSITION_KEYS:
        if key in entry:
            raise InvalidInput(key, entry[key], "a gate in Python is not made of parts")
    source = entry["factory"]
    if not isinstance(source, str) or ":" not in source:
        raise InvalidInput("factory", source, "must be 'module:function'")
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))
    imported("factory", source)
    return PythonGate(label, _validate.boolean("gated", entry.get("gated", True)), source)


def _composition(label: str, entry: dict[str, Any]) -> Composition | None:
    """A policy given by its parts instead of a name."""
    if "gated" in entry:
        raise InvalidInput(
            "gated", entry["gated"], "goes with factory; other policies know it themselves"
        )
    parts = {key: entry[key] for key in COMPOSITION_KEYS if key in entry}
    if "policy" in entry:
        if parts:
            key, value = next(iter(parts.items()))
            raise InvalidInput(key, value, "give a policy's name or its parts, not both")
        return None
    _validate.boolean("latches", parts.get("latches", False))
    return Composition(label, **{"certificate": "joint", "selection": "filter", "summary": "", **parts})


def _check_keys(where: str, section: str, content: dict[str, Any], keys: Any) -> None:
    for key, value in content.items():
        if key not in keys:
            argument = f"{where}: {section}.{key}" if section else f"{where}: {key}"
            raise StudyFileError(argument, value, "unknown key; known are " + ", ".join(keys))


_SPELLED = {
    field: f"{section}.{key}" for section, keys in SECTIONS.items() for key, field in keys.items()
}


def _with_file(where: str, error: InvalidInput, spelled: dict[str, str] = _SPELLED) -> StudyFileError:
    """The same error with the file and, where there is one, the key as the file spells it."""
    if isinstance(error, StudyFileError):
        return error
    field, bracket, index = error.argument.partition("[")
    argument = f"{where}: {spelled.get(field, field)}{bracket}{index}"
    named = StudyFileError(argument, None, error.remedy)
    named.shown = error.shown
    named.args = (f"{argument} = {error.shown}: {error.remedy}",)
    return named
