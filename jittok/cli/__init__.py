"""The command line: ``jittok encode | count | train | convert | info | warmup | demo``.

Exit codes: 0 done; 1 an error that the message explains; 2 wrong arguments; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from jittok.errors import JittokError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Without the program's name; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("jittok: interrupted; unfinished output was removed", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader of our output went away (as `head` does): not an error of ours
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (JittokError, OSError) as error:
        print(f"jittok: error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    from jittok.cli import convert, corpus, demo, info, train, warmup

    parser = argparse.ArgumentParser(
        prog="jittok", description="Turn text into token ids, exactly as the reference libraries do."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    corpus.add_encode(commands)
    corpus.add_count(commands)
    info.add(commands)
    train.add(commands)
    convert.add(commands)
    warmup.add(commands)
    demo.add(commands)
    return parser
