"""What the store costs, as ratios: beside its budget, beside its floor, and beside other stores doing the same work.

`python -m benchmarks` prints one table; `benchmarks/README.md` says how to read it.
"""
