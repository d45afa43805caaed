"""Plots and HTML reports of results, each one file that opens anywhere."""

from cosolve.report.comparison import Comparison, write_comparison, write_comparisons
from cosolve.report.report import write_report

__all__ = ["Comparison", "write_comparison", "write_comparisons", "write_report"]
