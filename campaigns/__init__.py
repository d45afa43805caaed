"""Long campaigns against the package: each is one command (`make campaign NAME=faults`), its figures are in the docs.

A campaign is a module with `run(quick) -> Outcome`; `page.py` prints the figures and writes them into
docs/validation/campaigns.md. The quick suite runs a fixed small sample of each (tests/campaigns).
"""
