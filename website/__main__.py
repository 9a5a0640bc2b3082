"""Builds the site: `python -m website [--out site]`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from website.build import ROOT, build


def main() -> int:
    """Parse the options and build."""
    parser = argparse.ArgumentParser(prog="python -m website", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="the folder to write")
    out = parser.parse_args().out.resolve()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    build(out)
    print(f"the site is in {out}; python -m http.server -d {out} shows it with its search")
    return 0


if __name__ == "__main__":
    sys.exit(main())
