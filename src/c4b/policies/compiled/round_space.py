"""The working space of an online round: one vector, divided among all that a round writes.

It begins with the ledger as it was before, so that a decision can be taken back. No array is made in a
round, and none is cleared.
"""

from typing import NamedTuple

from c4b._compilation.cache_lines import LINE, whole_lines
from c4b._compilation.jit import inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.belief import belief_size, room_for_belief
from c4b.evidence.ellipsoids import stack_and_dim
from c4b.evidence.pools.contained_ellipsoids import innermost_size, room_for_innermost
from c4b.ledger.bank_ledger import claims_size
from c4b.ledger.books import LedgerHeading
from c4b.policies.compiled.assessment_in_blocks import blocks_size
from c4b.policies.compiled.comparison import CONTRASTS
from c4b.policies.rounds.candidate_fields import ROWS


class RoundSpace(NamedTuple):
    """Views of the working space, after the ledger."""

    executed: Array  # (d,) features of what is executed; scratch until that is known
    contrasts: Array  # (CONTRASTS, K) see ``comparison``
    full: Array  # (ROWS, K) numbers of all candidates, where ``details`` hold only some
    region: Array  # for ``innermost``
    belief: Array  # for ``believed``
    rest: Array  # for claims and, after them, for blocks; from the beginning of a line of cache on


def space_size(evidence_flat: Array, ledger_flat: Array, size: int) -> int:
    """Numbers that a round with K candidates needs."""
    (stack, dim), room = stack_and_dim(evidence_flat), int(ledger_flat[LedgerHeading.ROOM])
    named = dim + (CONTRASTS + ROWS) * size + innermost_size(stack, dim) + belief_size(dim)
    rest = claims_size(stack, dim, room) + blocks_size(stack, dim, size)
    return len(ledger_flat) + named + rest + 2 * LINE


@inlined
def opened_round_space(space: Array, start: int, stack: int, dim: int, size: int) -> RoundSpace:
    """Name the parts of ``space`` from ``start`` on, where the ledger ends; for G ellipsoids."""
    of_region, of_belief = room_for_innermost(stack, dim), room_for_belief(dim)
    a = start + dim
    b = a + CONTRASTS * size
    c = b + ROWS * size
    d = c + of_region
    end = whole_lines(d + of_belief)
    return RoundSpace(
        shaped_view(space, start, (dim,)),
        shaped_view(space, a, (CONTRASTS, size)),
        shaped_view(space, b, (ROWS, size)),
        shaped_view(space, c, (of_region,)),
        shaped_view(space, d, (of_belief,)),
        shaped_view(space, end, (len(space) - end,)),
    )
