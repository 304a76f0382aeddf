"""Benchmarks: ``python -m benchmarks.NAME`` prints a table of ratios, with ``--json`` a flat object."""
