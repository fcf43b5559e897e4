"""A study as data: its settings, its methods, the number of episodes and the seed."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from c4b import _validate
from c4b.errors import InvalidInput
from c4b.evidence.model import DEFAULT_CONFIDENCE
from c4b.evidence.sets.table import checked_name
from c4b.policies.catalogue import registry
from c4b.policies.catalogue.composition import Composition
from c4b.policies.catalogue.registry import GateFactory
from c4b.policies.rounds.round import BASELINE_MEAN
from c4b.study.spec.setting import Setting


@dataclass(frozen=True, slots=True)
class PythonGate:
    """A gate in plain Python. ``source`` names its code; without it, the name must be registered.

    Every process that runs the study must be able to import the source, or know the name (see
    ``c4b.register_gate``). Reading the results needs no gate.
    """

    gate: str
    gated: bool = True
    """Whether the gate certifies what it plays."""
    source: str | None = None
    """``module:function``: a function of ``GateTerms``, a class derived from ``Gate`` or a
    ``GateFactory``."""

    @property
    def names_a_factory(self) -> bool:
        """Whether the source is a ``GateFactory`` instead of a function."""
        return self.source is not None and isinstance(imported("factory", self.source), GateFactory)

    def factory(self) -> GateFactory:
        """The factory that makes the gate. Raises ``InvalidInput`` if the source or name is unknown."""
        if self.source is not None:
            made = imported("factory", self.source)
            if isinstance(made, GateFactory):  # which says itself what it needs and promises
                return dataclasses.replace(made, name=self.gate, gated=self.gated and made.gated)
            return GateFactory(self.gate, made, "", self.gated)
        spec = registry.gate(self.gate)
        if not isinstance(spec, GateFactory):
            raise InvalidInput("policy", self.gate, "was a gate in Python and is a composition here")
        return spec


def imported(argument: str, source: str) -> Callable[..., Any] | GateFactory:
    """The object that ``module:function`` names."""
    module, _, name = source.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except Exception as error:  # somebody else's module may fail in any way
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInput(
            argument, source, f"cannot be imported as module:function ({first})"
        ) from error
    if not callable(found) and not isinstance(found, GateFactory):
        raise InvalidInput(argument, source, "is not a function")
    made: Callable[..., Any] | GateFactory = found
    return made


@dataclass(frozen=True, slots=True)
class Method:
    """A method that a study compares: a policy, optionally with a confidence set of its own."""

    label: str
    policy: str
    confidence: str | None = None
    after_forced_phase: bool = False
    """Play the baseline in the rounds in which every set-certified gate must; see
    ``Setting.forced_rounds``."""
    parts: Composition | PythonGate | None = None
    """The policy itself. With None, ``policy`` is looked up at once among the policies registered in this
    process, because other processes may not know the name."""

    def __post_init__(self) -> None:
        if self.parts is None:
            spec = registry.get(self.policy)
            parts = spec if isinstance(spec, Composition) else PythonGate(spec.name, spec.gated)
            object.__setattr__(self, "parts", parts)
        if self.confidence is not None:
            checked_name("confidence", self.confidence)

    @property
    def gated(self) -> bool:
        """Whether the method certifies what it plays."""
        assert self.parts is not None
        return self.parts.gated

    @property
    def is_told(self) -> bool:
        """Whether the certificates use baseline means that are given to the method."""
        return isinstance(self.parts, Composition) and BASELINE_MEAN in self.parts.needs

    def confidence_in(self, setting: Setting) -> str | None:
        """The confidence set: the method's own, else the setting's, else the policy's.

        None leaves the choice to the gate.
        """
        own = self.confidence or setting.confidence
        if own is None and isinstance(self.parts, Composition):
            return self.parts.confidence or DEFAULT_CONFIDENCE
        return own

    def forced_rounds_in(self, setting: Setting) -> int:
        """Number of rounds at the start in which the baseline is played."""
        return setting.forced_rounds if self.after_forced_phase else 0


@dataclass(frozen=True, slots=True)
class Study:
    """A study: settings x methods x episodes, and the seed of all random draws."""

    name: str
    title: str
    methods: tuple[Method, ...]
    settings: tuple[Setting, ...]
    swept: tuple[str, ...]
    episodes: int
    seed: int

    def __post_init__(self) -> None:
        if not self.name.strip() or {*self.name} & {*"/\\\0"} or self.name in (".", ".."):
            raise InvalidInput("name", self.name, "must be usable as the name of a folder")
        _validate.count("episodes", self.episodes, 2, "must be a whole number of at least 2")
        _validate.count("seed", self.seed, 0, "must be a whole number of at least 0")
        if self.seed >= 2**63:
            raise InvalidInput("seed", self.seed, "must be below 2**63")
        if not self.methods:
            raise InvalidInput("methods", [], "name at least one policy")
        labels = [method.label for method in self.methods]
        for label in labels:
            if labels.count(label) > 1:
                raise InvalidInput("methods", label, "appears twice; give each its own label")
        if not self.settings:
            raise InvalidInput("settings", [], "there must be at least one setting")
        for setting in self.settings:
            for label in setting.methods:
                if label not in labels:
                    remedy = f"is no label of a method; these are {', '.join(labels)}"
                    raise InvalidInput(f"methods of world {setting.world!r}", label, remedy)

    @property
    def rounds(self) -> int:
        """The largest number of rounds of any setting."""
        return max(setting.rounds for setting in self.settings)

    def plays(self, setting: int, label: str) -> bool:
        """Whether the method of this label plays in this setting."""
        named = self.settings[setting].methods
        return not named or label in named

    def with_(self, **changes: Any) -> Study:
        """Return a copy with other episodes, seed or methods."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def _repr_html_(self) -> str:
        """For notebooks: what will be run."""
        rows = {
            "methods": ", ".join(method.label for method in self.methods),
            "settings": len(self.settings),
            "swept": ", ".join(self.swept) or "nothing",
            "episodes": self.episodes,
            "rounds": self.rounds,
            "seed": self.seed,
        }
        lines = "".join(f"<tr><th>{k}</th><td>{escape(str(v))}</td></tr>" for k, v in rows.items())
        return f"<p><b>{escape(self.name)}</b>: {escape(self.title)}</p><table>{lines}</table>"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Study:
        settings = [
            Setting(**{**fields, **{key: tuple(fields[key]) for key in _TUPLES if key in fields}})
            for fields in data["settings"]
        ]
        methods = [Method(**{**fields, "parts": _parts(fields["parts"])}) for fields in data["methods"]]
        return cls(
            data["name"],
            data["title"],
            tuple(methods),
            tuple(settings),
            tuple(data["swept"]),
            data["episodes"],
            data["seed"],
        )


_TUPLES = ("theta", "baseline", "methods")
"""Fields of ``Setting`` that JSON turns into lists."""


def _parts(fields: dict[str, Any]) -> Composition | PythonGate:
    return PythonGate(**fields) if "gate" in fields else Composition(**fields)
