"""The command line; ``jittok --help`` says what there is.

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
        print(f"jittok: interrupted; {_how_to_go_on(options)}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader of our output went away (as `head` does): not an error of ours
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (JittokError, OSError) as error:
        print(f"jittok: error: {error}", file=sys.stderr)
        return 1


def _how_to_go_on(options: argparse.Namespace) -> str:
    if not hasattr(options, "checkpoint"):
        return "unfinished output was removed, and the same command goes on"
    if options.checkpoint is None:
        return "nothing was kept; with --checkpoint FILE, --resume FILE could go on"
    return f"if there is {options.checkpoint}, --resume {options.checkpoint} instead of the files goes on"


#: Shown by ``jittok --help``.
_TASKS = """\
by task:
  look at a tokenizer          jittok info tokenizer.json
  see the tokens of a text     jittok show "To be, or not to be" -t tokenizer.json
  encode a corpus              jittok encode corpus.txt -t tokenizer.json --out ids/
  only count its tokens        jittok count corpus.txt -t tokenizer.json
  see the text of ids          jittok decode ids/corpus.txt.ids.npy -t tokenizer.json
  learn a vocabulary           jittok train bpe corpus.txt --vocab-size 32000 --out tokenizer.json
  write it in another format   jittok convert tokenizer.json vocab.tiktoken
  measure on your own text     jittok bench tokenizer.json corpus.txt
  compare with the reference   jittok verify tokenizer.json corpus.txt
  compare two tokenizers       jittok compare old.json new.json corpus.txt
  see how they fit your text   jittok report old.json new.json texts/*.txt --out report.html
  compile kernels beforehand   jittok warmup -t tokenizer.json
  complete commands in a shell jittok completion bash

`jittok COMMAND --help` explains a command. Exit codes: 0 done; 1 an error that the message explains; 2 wrong arguments;
130 interrupted.
"""


def _parser() -> argparse.ArgumentParser:
    from jittok.cli import bench, compare, completion, convert, corpus, decode, demo, info, report, show, train, warmup

    parser = argparse.ArgumentParser(
        prog="jittok",
        description="Turn text into token ids, exactly as the reference libraries do.",
        epilog=_TASKS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    corpus.add_encode(commands)
    decode.add(commands)
    corpus.add_count(commands)
    info.add(commands)
    show.add(commands)
    train.add(commands)
    convert.add(commands)
    bench.add(commands)
    compare.add(commands)
    report.add(commands)
    warmup.add(commands)
    demo.add(commands)
    completion.add(commands, _parser)
    return parser
