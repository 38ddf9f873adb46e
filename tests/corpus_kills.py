"""Jobs that are killed; run by ``test_corpus_jobs.py`` in a process of its own, which has no threads when it forks.

``python corpus_kills.py steps|times FOLDER ARGUMENTS``: a job in FOLDER/out is started, killed with SIGKILL, and started
again, until nothing is left to do; then its output is compared with that of a job that nothing stopped. With ``steps``,
the first run is killed at its k-th operation on files, for every k there is; with ``times``, every run at some moment.
Prints how many runs were killed.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from byte_tokenizer import Bytes

from jittok.corpus.job import encode_corpus
from jittok.corpus.reading import Reading


class Slow(Bytes):
    """Takes its time, so that a job can be stopped in it."""

    def encode_batch(self, texts, **arguments):
        time.sleep(0.002)
        return super().encode_batch(texts, **arguments)


def run(folder, arguments, tokenizer):
    options = dict(arguments)
    reading = Reading(**options.pop("reading", {}))
    encode_corpus(tokenizer, [str(folder / "in")], folder / "out", reading=reading, **options)


def content(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "out").iterdir())}


def killed_at(step):
    """Count operations on files, and kill this process at one, before or after it."""
    count = [0]

    def counted(function):
        def call(*arguments, **options):
            count[0] += 1
            if count[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in ("replace", "fsync", "unlink", "ftruncate", "stat"):
        setattr(os, name, counted(getattr(os, name)))
    builtins.open = counted(open)
    return count


def in_a_child(work):
    """Run in a child; return its exit code, negative if a signal ended it, once it has ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    return child


def code_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def finish(folder, arguments, expected, what):
    code = code_of(in_a_child(lambda: run(folder, arguments, Bytes())))
    assert code == 0, what
    found = content(folder)
    assert found == expected, (what, [name for name in {**found, **expected} if found.get(name) != expected.get(name)])


def main():
    way, folder, arguments = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    assert code_of(in_a_child(lambda: run(folder, arguments, Bytes()))) == 0
    expected = content(folder)
    assert "manifest.jsonl" in expected
    killed = 0
    if way == "steps":
        step = 0
        while True:
            step += 1
            shutil.rmtree(folder / "out")

            def work(step=step):
                killed_at(step)
                run(folder, arguments, Bytes())

            code = code_of(in_a_child(work))
            if code == 0:
                break
            assert code == -signal.SIGKILL, (step, code)
            killed += 1
            finish(folder, arguments, expected, step)
    else:
        source = random.Random(arguments.get("shard_tokens", 0))
        begin = time.perf_counter()
        assert code_of(in_a_child(lambda: run(folder, {**arguments, "overwrite": True}, Slow()))) == 0
        longest = time.perf_counter() - begin
        wanted = 50
        while killed < wanted:
            shutil.rmtree(folder / "out")
            for _ in range(1000):
                child = in_a_child(lambda: run(folder, arguments, Slow()))
                time.sleep(source.uniform(0, longest))
                os.kill(child, signal.SIGKILL)
                code = code_of(child)
                assert code in (0, -signal.SIGKILL), code
                killed += code != 0
                if code == 0 or killed >= wanted:
                    break
            finish(folder, arguments, expected, killed)
    print(killed)


if __name__ == "__main__":
    main()
