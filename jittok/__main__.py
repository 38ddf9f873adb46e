"""``python -m jittok``: the command line."""

from jittok.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
