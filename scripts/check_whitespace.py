"""Say which files have blanks at the ends of lines, tabs at their beginning in Python, or no single newline at their end."""

from __future__ import annotations

import sys
from pathlib import Path


def faults(name: str) -> list[str]:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    found = [f"{name}:{n}: blanks at the end" for n, line in enumerate(text.split("\n"), 1) if line != line.rstrip()]
    if name.endswith(".py"):
        found += [f"{name}:{n}: a tab" for n, line in enumerate(text.split("\n"), 1) if line.startswith("\t")]
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        found.append(f"{name}: not one newline at the end")
    return found


if __name__ == "__main__":
    all_faults = [fault for name in sys.argv[1:] for fault in faults(name)]
    print("\n".join(all_faults), end="\n" if all_faults else "")
    sys.exit(bool(all_faults))
