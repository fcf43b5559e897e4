"""Queries of a deployment: state, earnings, decisions, explanations and audits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from c4b import _array_likes, _validate
from c4b.deployment.audit import audit as audits
from c4b.deployment.audit import parallel_audit
from c4b.deployment.audit.audit_report import Report
from c4b.deployment.audit.verified_place import VerifiedPlace
from c4b.deployment.configuration import Configuration
from c4b.deployment.questions import earnings, queries
from c4b.deployment.questions import witness as witnesses
from c4b.deployment.questions.earnings import Earnings, EarningsPoint
from c4b.deployment.questions.left_out import completed
from c4b.deployment.questions.search import Found, Wanted
from c4b.deployment.questions.views import LeftOutOfJournal, PendingDecision, Point, Record, Status
from c4b.deployment.questions.witness import Attested, Witness
from c4b.deployment.summary.item_counts import Item
from c4b.deployment.transactions.transactor import Transactor
from c4b.errors import InvalidInput
from c4b.evidence.model import LinearModel
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.explanation import Explanation


class DeploymentQuestions:
    """The queries of ``Deployment``, as a base class."""

    _transactor: Transactor
    _url: str | None

    @property
    def name(self) -> str:
        return self._transactor.configuration.name

    @property
    def model(self) -> LinearModel:
        return self._transactor.configuration.model

    @property
    def configuration(self) -> Configuration:
        return self._transactor.configuration

    def state(self) -> Status:
        """The current state, including everything that other processes have committed."""
        time = self._transactor.time
        return self._transactor.read(lambda journal, state: queries.status(journal, state, time(state)))

    def earnings(self, seconds: float | None = None, last: int | None = None) -> Earnings:
        """The earnings, and the uplift over the incumbent, estimated and certified.

        The window is all time, the last ``seconds``, or about the ``last`` decisions. The start of the
        window is accurate to about 3 %. The call takes as long for a hundred decisions as for a million.
        """
        if seconds is not None and last is not None:
            raise InvalidInput("last", last, "give seconds or last, not both")
        if seconds is not None:
            seconds = _validate.positive("seconds", seconds, "must be a positive number of seconds")
        if last is not None:
            last = _validate.count("last", last, 1, "must be a number of decisions, at least 1")
        time = self._transactor.time
        return self._transactor.read(
            lambda journal, state: earnings.of(
                queries.summary(journal, state), state.gate, seconds, last, time(state).now
            )
        )

    def earnings_course(self) -> list[EarningsPoint]:
        """The cumulative uplift after selected decisions, for a plot, from all data known now."""
        return self._transactor.read(
            lambda journal, state: earnings.course(queries.summary(journal, state), state.gate)
        )

    def items(self) -> list[Item]:
        """Counts for each label (offered, admissible, played) and its mean reward with an interval.

        The most played label comes first. :mod:`c4b.deployment.summary.item_counts` describes the
        interval.
        """
        noise = self.model.noise
        return self._transactor.read(
            lambda journal, state: queries.summary(journal, state).items.items(noise)
        )

    def find(
        self,
        request_id: str | None = None,
        label: str | None = None,
        outcome: str | None = None,
        played: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: str | int | None = None,
        limit: int = 100,
    ) -> Found:
        """Find the decisions that meet all given conditions, newest first.

        One call reads at most 5000 decisions. To continue, pass the ``next`` of the answer as ``before``.

        Parameters
        ----------
        label: label of the candidate that was played.
        outcome: ``pending``, ``observed``, ``timeout`` or ``forgotten``.
        played: ``baseline`` or ``candidate``.
        since, until: times with a time zone.
        """
        wanted, count = Wanted(request_id, label, outcome, played, since, until), _limit(limit)
        found = self._transactor.read(
            lambda journal, state: queries.find(journal, state, wanted, before, count)
        )
        return replace(found, records=[self._completable(record) for record in found.records])

    def decisions(
        self,
        after: str | int | None = None,
        limit: int = 100,
        before: str | int | None = None,
        newest: bool = False,
    ) -> list[Record]:
        """At most ``limit`` decisions with their outcomes, after ``after`` and before ``before``.

        ``after`` and ``before`` are ids or entry numbers. The result holds the first decisions in that
        range, oldest first; with ``newest`` the last ones, newest first. Only that part of the journal is
        read. To get the next page, pass the last id as ``after`` or, with ``newest``, as ``before``.
        """
        count = _limit(limit)
        last = _validate.boolean("newest", newest)
        records = self._transactor.read(
            lambda journal, state: queries.decisions(journal, state, after, before, count, last)
        )
        return [self._completable(record) for record in records]

    def series(self, points: int = 500) -> list[Point]:
        """About ``points`` evenly spaced decisions for a plot, including the first and the last one.

        Up to 512 points are evenly spaced in any journal. For more points the result has as many as are
        kept, up to 1024. The call takes as long for a hundred decisions as for a million.
        """
        count = _validate.count("points", points, 2, "must be a whole number of at least 2")
        return self._transactor.read(lambda journal, state: queries.series(journal, state, count))

    def pending(self, limit: int = 100) -> list[PendingDecision]:
        """Decisions without a known outcome, oldest first, with their age in seconds."""
        count, time = _limit(limit), self._transactor.time
        return self._transactor.read(
            lambda journal, state: queries.pending(journal, state, count, time(state).now)
        )

    def explain(self, decision_id: str | Decision) -> Explanation:
        """Explain a decision: the bounds, margin and admissibility of every candidate.

        Numbers that the choice did not depend on are recomputed from the state at that moment. For a
        decision before the last two snapshots this reads the journal from its beginning.
        """
        return self.record(decision_id).explain()

    def record(self, decision_id: str | Decision) -> Record:
        """One decision with its context and outcome; all numbers are complete, as in ``explain``."""
        id_, transactor = _array_likes.decision_id(decision_id), self._transactor
        record = transactor.read(lambda journal, state: queries.record(journal, state, id_))
        if record.evaluated is None:
            return record
        return completed(record, transactor.backend, transactor.configuration, transactor.sealer)

    def _completable(self, record: Record) -> Record:
        """A record of a list, which is completed when somebody asks for it."""
        if record.evaluated is None:
            return record
        return replace(record, decision=self._with_left_out(record.decision))

    def _with_left_out(self, decision: Decision) -> Decision:
        return decision._replace(left_out=LeftOutOfJournal(lambda: self.record(decision.id)))

    def audit(
        self,
        sample: int = 16,
        progress: Callable[[int, int], None] | None = None,
        jobs: int = 1,
        resume: str | Path | None = None,
        witness: str | Path | None = None,
        receipts: str | Path | None = None,
        sealed: bool = False,
        archive: Iterable[str | Path] = (),
    ) -> Report:
        """Recompute the whole journal with independent code; see :mod:`c4b.deployment.audit.audit`.

        Parameters
        ----------
        sample: approximate number of decisions that are recomputed in 50 digits.
        progress: called with the number of entries verified so far and their total number.
        jobs: number of processes. Gates in plain Python, and stores that only one process can open, use
            one.
        resume: file that records how far the audit has come. It is written during the audit, and the next
            audit continues from there: it reads the whole chain again, which must still be the verified
            one, but recomputes nothing twice.
        witness: a file that ``witness`` wrote, or the address of one. Every entry that it attests must be
            in the journal; see :mod:`c4b.deployment.questions.witness`.
        receipts: a file of answers with receipts. Every entry that they attest must be in the journal.
        sealed: require that every entry is sealed with a key that this process has; see
            :mod:`c4b.journal.seal`.
        archive: the files that ``archive`` wrote, if any.
        """
        self._transactor.check_usable()
        processes = _validate.count("jobs", jobs, 1, "must be a whole number of at least 1")
        path = None if resume is None else Path(resume)
        task = audits.Task(
            sample,
            verified=None if path is None else VerifiedPlace.read(path, self.name),
            attested=self._attested(witness=witness, receipts=receipts),
            archives=tuple(str(each) for each in archive),
        )
        backend = self._transactor.backend  # not in turn: it may take long
        if processes > 1 and self._url is not None and self.configuration.is_recomputable:
            report = parallel_audit.run(self._url, self.name, task, processes, progress, path)
        else:
            report = audits.run(
                backend, self.name, task, progress, None if path is None else lambda at: at.write(path)
            )
        if report.clean and sealed and not report.sealed:
            report.finding = "the entries are not sealed with a key that is known here"
        if report.clean and (problems := self._transactor.backend.problems()):
            report.finding = f"the store's own check says: {'; '.join(problems)}"
        return report

    def witness(self, path: str | Path) -> Witness:
        """Append the number and the hash of the last entry to a file, and return them.

        Raises ``JournalCorrupt`` and writes nothing if the journal does not continue the file's last
        witness. In this case the end of the journal was removed, or an old copy was restored.
        """
        earlier = witnesses.last(Path(path), self.name)
        seq, hash_ = self._transactor.read(lambda journal, state: queries.end(journal, state, earlier))
        made = Witness(self.name, seq, hash_)
        if made != earlier:
            made.append_to(Path(path))
        return made

    def check_witness(self, path: str | Path) -> None:
        """Raise ``JournalCorrupt`` unless the journal continues the last witness in a file."""
        earlier = witnesses.last(Path(path), self.name)
        self._transactor.read(lambda journal, state: queries.end(journal, state, earlier))

    def _attested(self, **sources: str | Path | None) -> Attested:
        """What all sources together say."""
        attested: Attested = {}
        for argument, source in sources.items():
            if source is not None:
                said = witnesses.read(argument, str(source), self.name)
                if not said:
                    raise InvalidInput(argument, str(source), f"says nothing of {self.name!r}")
                for seq, hashes in said.items():
                    attested[seq] = attested.get(seq, frozenset()) | hashes
        return attested


def _limit(value: object) -> int:
    return _validate.count("limit", value, 1, "must be a whole number of at least 1")
