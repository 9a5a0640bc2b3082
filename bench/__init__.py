"""Benchmarks: cases as data, one runner, stored records.

python -m bench --list
python -m bench --case string-body --rounds 5
python -m bench --record

`cases` lists what is measured, `measures` how, `clock` has the timers, `records` what is stored.
`maskbench_engine` is separate: another project's runner loads it.
"""
