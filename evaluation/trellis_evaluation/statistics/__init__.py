"""Uncertainty of scores: intervals, tests, pass@k, and the summary of a benchmark's samples."""

from trellis_evaluation.statistics.intervals import Interval, bootstrap, mean_score, wilson
from trellis_evaluation.statistics.multiple import holm
from trellis_evaluation.statistics.paired import PairedTest, compare_pairs, mcnemar, paired_bootstrap
from trellis_evaluation.statistics.passing import pass_at_k, pass_at_k_score
from trellis_evaluation.statistics.summary import summarise
from trellis_evaluation.statistics.unpaired import UnpairedTest, welch

__all__ = [
    "Interval",
    "PairedTest",
    "UnpairedTest",
    "bootstrap",
    "compare_pairs",
    "holm",
    "mcnemar",
    "mean_score",
    "paired_bootstrap",
    "pass_at_k",
    "pass_at_k_score",
    "summarise",
    "welch",
    "wilson",
]
