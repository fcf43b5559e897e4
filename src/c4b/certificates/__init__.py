"""A confidence set and a pair (candidate, baseline) -> lower bounds of their contrast."""

from c4b.certificates.certificates import (
    decoupling_penalty,
    joint_certificate,
    separate_certificate,
)

__all__ = ["decoupling_penalty", "joint_certificate", "separate_certificate"]
