"""A study as data: its settings, its methods, the number of episodes and the seed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from c4b import _validate
from c4b.errors import InvalidInput
from c4b.evidence.model import CONFIDENCES, DEFAULT_CONFIDENCE
from c4b.policies import registry
from c4b.policies.composition import Composition
from c4b.study.spec.setting import Setting


@dataclass(frozen=True, slots=True)
class Method:
    """A column of the study: a policy, perhaps with a confidence choice of its own."""

    label: str
    policy: str
    confidence: str | None = None
    after_forced_phase: bool = False
    """Play the baseline for as long as any set-certified gate must; see ``Setting.forced_rounds``."""
    parts: Composition | None = None
    """The policy itself. None looks ``policy`` up at once, among those registered in this process: other
    processes that take part may not know the name."""

    def __post_init__(self) -> None:
        if self.parts is None:
            object.__setattr__(self, "parts", registry.get(self.policy))
        if self.confidence is not None:
            _validate.name("confidence", self.confidence, CONFIDENCES)

    @property
    def composition(self) -> Composition:
        assert self.parts is not None
        return self.parts

    def confidence_in(self, setting: Setting) -> str:
        """The method's own choice, else the setting's, else the policy's."""
        own = self.confidence or setting.confidence
        return own or self.composition.confidence or DEFAULT_CONFIDENCE


@dataclass(frozen=True, slots=True)
class Study:
    """Settings x methods x episodes, and the seed of all draws."""

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

    @property
    def rounds(self) -> int:
        """The longest deployment of any setting."""
        return max(setting.rounds for setting in self.settings)

    def with_(self, **changes: Any) -> Study:
        """A copy with other episodes, seed or methods."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Study:
        settings = [
            Setting(**{**fields, "theta": tuple(fields["theta"]), "baseline": tuple(fields["baseline"])})
            for fields in data["settings"]
        ]
        methods = [
            Method(**{**method, "parts": Composition(**method["parts"])}) for method in data["methods"]
        ]
        return cls(
            data["name"],
            data["title"],
            tuple(methods),
            tuple(settings),
            tuple(data["swept"]),
            data["episodes"],
            data["seed"],
        )
