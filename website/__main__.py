"""Builds the site: `python -m website [--out site] [--version 0.1]`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from website.build import ROOT, build, publish


def main() -> int:
    """Parse the options and build."""
    parser = argparse.ArgumentParser(prog="python -m website", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="the folder to write")
    parser.add_argument(
        "--version", help="the version: it gets a folder of its own beside those of others"
    )
    options = parser.parse_args()
    out = options.out.resolve()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    if options.version is None:
        build(out)
    else:
        publish(out, options.version)
    print(f"the site is in {out}; python -m http.server -d {out} shows it with its search")
    return 0


if __name__ == "__main__":
    sys.exit(main())
