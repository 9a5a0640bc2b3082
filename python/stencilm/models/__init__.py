"""Language models behind one small protocol; each backend imports its framework in its own file."""
