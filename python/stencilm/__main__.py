"""`python -m stencilm` is the command line."""

import sys

from stencilm.cli import main

if __name__ == "__main__":
    sys.exit(main())
