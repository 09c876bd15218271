"""Compares all entries with the installed engines; 1 where some have moved.

``python -m trellis_train.compat [--json]``; ``--write TARGET`` records what was read and found to be right.
"""

import argparse
import json
import sys
from typing import Any

from trellis_train.compat.catalogue import list_changes
from trellis_train.compat.checking import Finding, check_all
from trellis_train.compat.records import write_records


def main(arguments: list[str]) -> int:
    """Print the table; the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.compat", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write", nargs="+", metavar="TARGET", help="record these as they are now, or 'all'")
    options = parser.parse_args(arguments)
    if options.write:
        return write(options.write)
    findings = check_all(list_changes())
    failures = [finding for finding in findings if finding.is_failure]
    if options.json:
        print(json.dumps([as_row(finding) for finding in findings]))
    else:
        for finding in findings:
            if finding.is_failure or finding.state == "accepted":
                print(f"{finding.state}: {finding.change.target}: {finding.problem} {finding.place}")
        print(f"{len(findings)} symbols of engines are changed, {len(failures)} of them have moved.")
    return 1 if failures else 0


def write(targets: list[str]) -> int:
    """Record entries as they are now; 2 where there is no such target."""
    entries = list_changes()
    known = [entry.target for entry in entries]
    if unknown := [target for target in targets if target not in (*known, "all")]:
        print(f"no change has the target {', '.join(unknown)}", file=sys.stderr)
        return 2
    chosen = [entry for entry in entries if entry.target in targets or "all" in targets]
    write_records(chosen, all_targets=known)
    return 0


def as_row(finding: Finding) -> dict[str, Any]:
    """Return a change and its check result as a dictionary, for scripts."""
    entry = finding.change
    return {
        "target": entry.target,
        "group": entry.group,
        "kind": entry.kind,
        "way": entry.way,
        "does": entry.does,
        "without": entry.without,
        "upstream": entry.upstream,
        "note": entry.note,
        "versions": f"{entry.package} {entry.version_range}",
        "installed": finding.installed,
        "state": finding.state,
        "problem": finding.problem,
        "source": None if finding.found is None else finding.found.source,
        "signature": None if finding.found is None else finding.found.signature,
        "place": finding.place,
        "tests": list(entry.tests),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
