"""An audit of mask engines (temporary).
"""

from __future__ import annotations

from stencilm.audit.engines import Engine, find_engine
from stencilm.audit.findings import Finding, Outcome, Report
from stencilm.audit.run import audit
from stencilm.audit.schemas import SchemaCase, read_schemas

__all__ = [
    "Engine",
    "Finding",
    "Outcome",
    "Report",
    "SchemaCase",
    "audit",
    "find_engine",
    "read_schemas",
]
