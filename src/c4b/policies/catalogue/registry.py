"""The registry of policies: the package's own, those of your program and those of installed packages.

A policy is a ``Composition`` of compiled parts, or a ``GateFactory`` that makes gates in plain Python. A
package offers policies to every program, study, deployment and service by entry points of the group
``c4b.gates``. Each entry point names a composition or a factory::

    [project.entry-points."c4b.gates"]
    my-gate = "my_package.gates:my_gate"

Entry points are loaded when an unregistered name is requested, and when names are listed.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import Any, TypeVar

from c4b import _validate
from c4b._rounding_mode import check_rounds_to_nearest
from c4b.errors import InvalidInput
from c4b.policies.catalogue import composition as compositions
from c4b.policies.catalogue.built_in import BUILT_IN
from c4b.policies.catalogue.composition import Composition
from c4b.policies.catalogue.promise import EVERY_ROUND, Kind, Promise
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate import Gate, GateTerms

ENTRY_POINTS = "c4b.gates"
DEFAULT_POLICY = "reserve-c4b+"
"""The recommended policy; used where none is named."""


@dataclass(frozen=True, slots=True)
class GateFactory:
    """A policy whose gates are made by a function, usually a class derived from ``Gate``."""

    name: str
    make: Callable[..., Gate]
    summary: str
    gated: bool = True
    """Whether the policy certifies what it plays."""
    needs: frozenset[str] = frozenset()
    """Required inputs: ``"baseline_mean"`` in every round, ``"horizon"``, ``"seed"``."""
    promise: Promise = EVERY_ROUND
    """What the policy promises, if it is gated."""
    revision: int = 1
    """Increase it when the gate decides or reports something else than before. Journals and files record
    it. ``make(terms, revision=...)`` is called to continue a record of an earlier revision."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidInput("name", self.name, "must be a non-empty text")
        if not callable(self.make):
            raise InvalidInput("make", self.make, "must be a function of GateTerms that returns a Gate")


PolicySpec = Composition | GateFactory
Made = TypeVar("Made", bound=Callable[[GateTerms], Gate])

_REGISTRY: dict[str, PolicySpec] = {}
_FORMER: dict[str, GateFactory] = {}
"""What names of gates in Python meant that are compositions since: for files and journals."""
_loaded = False


def register(spec: PolicySpec) -> PolicySpec:
    """Make a policy available by its name. Raises ``InvalidInput`` if the name is taken."""
    if not isinstance(spec, Composition | GateFactory):
        raise InvalidInput("spec", spec, "must be a c4b.policies.Composition or GateFactory")
    if spec.name in _REGISTRY and _REGISTRY[spec.name] != spec:
        raise InvalidInput("name", spec.name, "is taken; choose another name")
    _REGISTRY[spec.name] = spec
    return spec


def register_gate(
    name: str,
    summary: str,
    gated: bool = True,
    needs: frozenset[str] = frozenset(),
    promise: Promise = EVERY_ROUND,
    revision: int = 1,
) -> Callable[[Made], Made]:
    """Decorate a ``Gate`` class, or a function of ``GateTerms``, to register it under this name."""

    def decorate(make: Made) -> Made:
        register(GateFactory(name, make, summary, gated, needs, promise, revision))
        return make

    return decorate


def register_former_gate(name: str, revision: int = 1, **fields: Any) -> Callable[[Made], Made]:
    """Decorate a ``Gate`` class that ``name`` meant before it became a composition."""

    def decorate(make: Made) -> Made:
        summary = f"{name} as earlier versions recorded it, in Python"
        _FORMER[name] = GateFactory(name, make, summary, revision=revision, **fields)
        return make

    return decorate


def get(name: str) -> PolicySpec:
    """Return the policy of this name, or raise ``UnknownName``, which lists the known names."""
    if not isinstance(name, str) or name not in _REGISTRY:
        _load_entry_points()
    return _REGISTRY[_validate.name("policy", name, _REGISTRY)]


def names() -> list[str]:
    """List all policies: the package's own, then those of other packages and programs."""
    _load_entry_points()
    return list(_REGISTRY)


def build(spec: PolicySpec, terms: GateTerms) -> Gate:
    """A fresh gate, in a thread that rounds to nearest."""
    check_rounds_to_nearest()
    if isinstance(spec, Composition):
        return CompiledGate(spec, terms)
    gate = spec.make(terms)
    if not isinstance(gate, Gate):
        raise InvalidInput("make", gate, f"policy {spec.name!r} must make a c4b.policies.Gate")
    if not hasattr(gate, "terms"):
        gate.terms = terms
    return gate


def needs(spec: PolicySpec) -> frozenset[str]:
    """Required inputs of the policy: fields of a ``Round``, or terms."""
    return spec.needs


def promise(spec: PolicySpec) -> Promise:
    """What the policy promises, and after which rounds."""
    return spec.promise if spec.gated else Promise(Kind.NONE)


def recorded(spec: PolicySpec) -> dict[str, Any]:
    """The policy as plain data, for files and journals; ``from_record`` reads it."""
    if isinstance(spec, Composition):
        return {"composition": compositions.fields(spec)}
    later = {"revision": spec.revision} if spec.revision > 1 else {}
    return {"gate": {"name": spec.name, **later}}


def from_record(record: dict[str, Any]) -> PolicySpec:
    """The policy that ``recorded`` wrote; ``record`` may hold other keys as well.

    A composition is rebuilt from its parts. A Python gate must be registered, or be offered by an
    installed package, under the same name.
    """
    if "gate" in record:
        spec, revision = gate(record["gate"]["name"]), record["gate"].get("revision", 1)
        if isinstance(spec, GateFactory) and revision < spec.revision:
            earlier = partial(spec.make, revision=revision)
            if not _takes(spec.make, revision):
                remedy = (
                    f"was recorded, and {spec.name!r} has revision {spec.revision} here; its "
                    "make(terms, revision=...) must take the earlier ones, or have a new name"
                )
                raise InvalidInput("revision", revision, remedy)
            return dataclasses.replace(spec, make=earlier, revision=revision)
        if isinstance(spec, GateFactory) and revision > spec.revision:
            remedy = f"was recorded by a later version; this one has {spec.name!r} up to {spec.revision}"
            raise InvalidInput("revision", revision, remedy)
        return spec
    return Composition(**record["composition"])


def _takes(make: Callable[..., Gate], revision: int) -> bool:
    """Whether ``make(terms, revision=...)`` can be called."""
    try:
        inspect.signature(make).bind(None, revision=revision)
    except TypeError:
        return False
    except ValueError:  # it does not say
        return True
    return True


def gate(name: str) -> PolicySpec:
    """What a record means by the name of a gate in Python: perhaps a composition has the name now."""
    spec = get(name)
    return _FORMER.get(name, spec) if isinstance(spec, Composition) else spec


def _load_entry_points() -> None:
    """Register what installed packages offer; what fails to load is left out, with a warning."""
    global _loaded  # noqa: PLW0603 (once in a process)
    if _loaded:
        return
    _loaded = True
    for point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = point.load()
            if point.name not in _REGISTRY:  # importing it may have registered it already
                register(
                    loaded
                    if isinstance(loaded, Composition | GateFactory)
                    else _factory(point.name, loaded)
                )
        except Exception as error:  # noqa: BLE001 (another package's fault must not stop this one)
            warnings.warn(f"policy {point.name!r} of {point.value} cannot be used: {error}", stacklevel=3)


def _factory(name: str, make: Callable[[GateTerms], Gate]) -> GateFactory:
    """A ``Gate`` class that an entry point names directly."""
    lines = (make.__doc__ or name).strip().splitlines()
    return GateFactory(name, make, lines[0])


for _entry in BUILT_IN:
    register(_entry)
