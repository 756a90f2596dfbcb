"""How well `harness audit` classifies programs: precision and recall per class against labels given by hand.

python -m bench.audit_programs
"""

from __future__ import annotations

from tests.support.labelled import FOLDER, as_table, measure


def main() -> None:
    """Print a table for the programs written for the purpose and one for the demo's."""
    for name, folder in (("written for the purpose", FOLDER), ("the demo's", FOLDER / "demo")):
        figures, programs, faults = measure(folder)
        print(f"{programs} programs, {name}\n{as_table(figures)}")
        print("".join(f"  {fault}\n" for fault in faults))


if __name__ == "__main__":
    main()
