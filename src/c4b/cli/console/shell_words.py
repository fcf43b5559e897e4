"""Errors of the library in the words of the shell: an argument becomes the option that it came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from c4b.errors import C4BError, InvalidInput

_PHRASES = {
    "baseline_nonnegative=True": "leaving out --signed-baseline",
    "baseline_nonnegative=False": "--signed-baseline",
    "independent=True (command line: --independent)": "--independent",
    "outcome_timeout,": "--outcome-timeout,",
}
"""What a remedy says in Python, and how the same is said here."""


def in_shell_words(error: C4BError, command: Any, words: Sequence[str]) -> str:
    """The message of ``error`` for somebody who typed ``words`` after ``c4b``; ``command`` is the app."""
    text = str(error)
    options = _options(command, words)
    if isinstance(error, InvalidInput):
        name = options.get(error.argument.partition("[")[0])
        if name is not None:
            text = f"{name}{text[len(error.argument.partition('[')[0]) :]}"
    for phrase, said in _PHRASES.items():
        text = text.replace(phrase, said)

    def option(match: re.Match[str]) -> str:
        name = options.get(match.group(1))
        return match.group(0) if name is None or not name.startswith("--") else name

    return re.sub(r"\b(\w+)=(?:True|None)", option, text)


def _options(command: Any, words: Sequence[str]) -> dict[str, str]:
    """Options and arguments of the command that was called, by the name that the library gives them."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    names = {}
    for each in getattr(command, "params", []):
        longest = max(each.opts, key=len)
        names[str(each.name)] = longest if longest.startswith("--") else longest.upper()
    return names
