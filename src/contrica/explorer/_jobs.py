"""Computations in the background: one pool for a server, each job with its progress and its end."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from contrica.errors import ContricaError, ParameterError, collected, unmarked
from contrica.explorer._data import ExplorerData
from contrica.explorer._fits import unnamed
from contrica.explorer._views import FitView, JobView
from contrica.inference import significance, stability
from contrica.progress import watched

__all__ = ["KINDS", "Jobs"]

logger = logging.getLogger("contrica")

# Resamples and permutations of a job, threads of the pool, and jobs whose end is remembered.
N_RESAMPLES, N_PERMUTATIONS, N_THREADS, MAX_JOBS = 50, 999, 2, 200


class _Cancelled(Exception):
    """Nobody waits for the result any more."""


def _significance(data: ExplorerData, view: FitView) -> Any:
    return significance(
        unnamed(view.model),
        data.fore,
        background=data.background,
        n_permutations=N_PERMUTATIONS,
        **data.fit_groups,
    )


def _stability(data: ExplorerData, view: FitView) -> Any:
    if len(data.backs) > 1:
        raise ParameterError(
            "several-backgrounds",
            f"there are {len(data.backs)} backgrounds",
            "rows of one are resampled",
            "Explore the foreground against one of them.",
            "background",
        )
    return stability(
        unnamed(view.model),
        data.fore,
        background=data.background,
        n_resamples=N_RESAMPLES,
        random_state=0,
        **data.fit_groups,
    )


KINDS: dict[str, Callable[[ExplorerData, FitView], Any]] = {
    "significance": _significance,
    "stability": _stability,
}


class Jobs:
    """A pool of threads, and what is known of every job."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(N_THREADS, thread_name_prefix="contrica-explorer")
        self._lock = threading.Lock()
        self._views: OrderedDict[str, JobView] = OrderedDict()
        self._ends: dict[str, threading.Event] = {}

    def start(
        self, kind: str, data: ExplorerData, view: FitView, done: Callable[[Any], None]
    ) -> str:
        """Start a job; one of the same kind and fit that goes on is another reader's, and no obstacle.

        Parameters
        ----------
        kind : {"significance", "stability"}
        data : ExplorerData
        view : FitView
        done : callable
            Is given the result.

        Returns
        -------
        str
            Of the job: nobody guesses it.
        """
        if kind not in KINDS:
            raise ParameterError(
                "unknown-choice",
                f"a job {unmarked(kind)} was asked for",
                f"there are {', '.join(KINDS)}",
                parameter="kind",
            )
        job_id, end = secrets.token_urlsafe(12), threading.Event()
        with self._lock:
            self._views[job_id] = JobView(job_id, kind, view.key, "waiting", 0.0, "waiting")
            self._ends[job_id] = end
            over = [each for each, known in self._views.items() if known.is_over]
            for old in over[: max(len(self._views) - MAX_JOBS, 0)]:
                del self._views[old], self._ends[old]
        self._pool.submit(self._run, job_id, end, lambda: KINDS[kind](data, view), done)
        return job_id

    def has(self, job_id: str) -> bool:
        """Whether a job is known."""
        return job_id in self._views

    def view(self, job_id: str) -> JobView:
        """How far a job is.

        Parameters
        ----------
        job_id : str

        Returns
        -------
        JobView
        """
        with self._lock:
            if job_id in self._views:
                return self._views[job_id]
        raise ParameterError(
            "no-such-job",
            "a job was asked for that is not known",
            remedy="Start it again.",
            parameter="job",
        )

    def cancel(self, job_id: str) -> None:
        """Stop a job: at its next step, or before it begins.

        Parameters
        ----------
        job_id : str
        """
        with self._lock:
            if job_id in self._ends:
                self._ends[job_id].set()
                if not self._views[job_id].is_over:
                    self._tell(job_id, status="cancelled", words="cancelled")

    def close(self) -> None:
        """Stop all jobs; returns once they have ended."""
        for job_id in list(self._views):
            self.cancel(job_id)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _tell(self, job_id: str, **facts: Any) -> None:
        self._views[job_id] = replace(self._views[job_id], **facts)

    def _run(
        self,
        job_id: str,
        end: threading.Event,
        work: Callable[[], Any],
        done: Callable[[Any], None],
    ) -> None:
        def step(number: int, count: int, what: str) -> None:
            if end.is_set():
                raise _Cancelled
            told = {"progress": number / max(count, 1), "words": f"{number} of {count} {what}"}
            with self._lock:
                if not end.is_set():
                    self._tell(job_id, **told)

        facts: dict[str, Any]
        try:
            if end.is_set():
                raise _Cancelled
            with self._lock:
                self._tell(job_id, status="running", words="reading the rows")
            with collected(), watched(step):
                result = work()
            if end.is_set():
                raise _Cancelled
            done(result)
            facts = {"status": "done", "progress": 1.0, "words": "done", "result": result}
        except _Cancelled:
            facts = {"status": "cancelled", "words": "cancelled"}
        except ContricaError as error:
            facts = {"status": "failed", "words": str(error)}
        except Exception as error:  # a thread has nobody else to tell
            logger.exception("a job of the explorer failed")
            facts = {"status": "failed", "words": f"It failed: {type(error).__name__}: {error}"}
        with self._lock:
            if job_id in self._views:
                self._tell(job_id, **facts)
