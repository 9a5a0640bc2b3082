"""Benchmarks: cases as data, one runner, records kept.

python -m bench --list
python -m bench --case string-body --rounds 5
python -m bench --record

`cases` says what is measured, `measures` how, `clock` with what, `records` what is kept of it.
`maskbench_engine` stands apart: a runner of somebody else's loads it.
"""
