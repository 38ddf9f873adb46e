"""``jittok completion``: a script that lets a shell complete jittok's commands and options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from jittok.errors import MissingDependencyError

SHELLS = ("bash", "zsh")


def add(commands: Any, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Define the command's arguments; `parser` makes that of the whole program."""
    command = commands.add_parser(
        "completion",
        help="completion of commands and options in your shell",
        description=(
            "Print a script for the shell. For bash: jittok completion bash >"
            " ~/.local/share/bash-completion/completions/jittok; for zsh: put the output into a file _jittok in a folder of"
            " $fpath."
        ),
    )
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(run=lambda options: run(options, parser()))


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise MissingDependencyError("jittok completion needs shtab: pip install 'jittok[cli]'") from None
    print(shtab.complete(parser, options.shell))
    return 0
