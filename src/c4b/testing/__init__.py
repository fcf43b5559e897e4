"""A conformance kit for policies: named checks that you can run on your own policy.

>>> report = check_policy("refresh")
>>> report["the bank never exceeds the truth"]
'passed'
>>> check_policy("linucb")["the bank never exceeds the truth"]
'does not apply: no gate, nothing is promised'

In your own test suite, for a policy, a composition or a function that makes a fresh policy::

    @pytest.mark.parametrize("check", c4b.testing.checks(), ids=str)
    def test_my_policy(check):
        check(my_factory)
"""

from c4b.testing import calls, safety  # noqa: F401 (each registers its checks)
from c4b.testing.kit import Check, check_policy, checks

__all__ = ["Check", "check_policy", "checks"]
