"""Saved runs audited: what the agents did, where answers come from, whether a run can be trusted, what it cost.

Reads run folders only: no model, no sandbox, no network. A trajectory is read once (`walk.py`) into facts; the checks
(`checks/`) are functions of these facts; `run.py` adds them up.
"""

from harness.audit.run import CHECKS, MEASURES, Audit, audit_run

__all__ = ["CHECKS", "MEASURES", "Audit", "audit_run"]
