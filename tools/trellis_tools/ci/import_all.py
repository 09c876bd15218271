"""Import every module of packages and print those that fail as JSON: ``python import_all.py PACKAGE...``.

Only the standard library is used: it is run by interpreters that lack some of what is to be imported.
"""

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator, Sequence


def find_failures(packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield modules that cannot be imported, each with the reason."""
    for name in packages:
        try:
            package = importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            yield name, repr(error)
            continue
        for each in pkgutil.walk_packages(package.__path__, f"{name}."):
            # A program does its work when it is imported, and what is measured against runs elsewhere.
            if "baselines" in each.name or each.name.endswith("__main__"):
                continue
            try:
                importlib.import_module(each.name)
            except Exception as error:  # noqa: BLE001
                yield each.name, repr(error)


if __name__ == "__main__":
    print("\n" + json.dumps(dict(find_failures(sys.argv[1:]))))
