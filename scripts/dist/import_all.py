"""Imports every module of the installed packages and prints the results as JSON.

The script runs in the bare environment, as text given to ``python -I -c``: so it imports nothing of the repository.
"""

import importlib
import importlib.util
import json
import pkgutil
import sys

PACKAGES = ("kadcrawl", "kadcrawl_sim")


def main() -> None:
    """Import them all."""
    needs: dict[str, str] = {}
    modules = [*PACKAGES]
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        modules += [found.name for found in pkgutil.walk_packages(path, f"{package}.")]
    for name in modules:
        if name.endswith(".__main__"):
            continue
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            needs[name] = error.name or "?"
    files = {name: getattr(sys.modules[name], "__file__", None) or "" for name in modules if name in sys.modules}
    outside = sorted(name for name, file in files.items() if not file.startswith(sys.prefix))
    strange = [name for name in ("tests", "scripts", "sim", "fuzz") if importlib.util.find_spec(name) is not None]
    print(json.dumps({"modules": len(modules), "needs": needs, "outside": outside, "strange": strange}))


if __name__ == "__main__":
    main()
