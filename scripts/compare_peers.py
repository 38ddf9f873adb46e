"""Compare jittok's speed with the libraries that people would use instead.

    python scripts/compare_peers.py --models MODELS --corpora CORPORA --out speed.md --plot speed.png

MODELS holds ``bbpe/gpt2/tokenizer.json``, ``tiktoken/<encoding>/<encoding>.tiktoken`` and
``wordpiece/<model>/tokenizer.json`` and so on, see FAMILIES (``--model`` names single files instead); CORPORA holds
``english.txt``, ``code.txt`` and ``multi.txt``, UTF-8, documents separated by one NUL byte. ``--corpus japanese`` is what
is Japanese among ``multi.txt``.

How it is measured
------------------
- Every measurement has a process of its own, so that no cache knows the text. A process loads the model,
  encodes one small text (kernels compiled, vocabulary loaded), then the corpus for the first time ("unseen"),
  then the same again ("repeated").
- Libraries take turns, round by round, on the same machine in the same minutes; the best round counts.
- MB/s of process CPU time, one thread, unless a table says wall time. MB are 10^6 bytes of UTF-8.
- Every library takes ``list[str]`` and gives arrays, by the fastest way that it documents. Those that only give
  Python lists are timed up to arrays made of these. Python lists are a table of their own.
- Ids are compared with the reference's on a sample of documents: sentencepiece's where there is a .model file,
  else tiktoken's, else tokenizers'; a library that differs is marked.
- Where there is a .model file, jittok and sentencepiece load that; others the tokenizer.json of the same pieces.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import gc
import importlib.metadata
import importlib.util
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jittok.interop.peers import ADAPTERS, LACKS, NEEDS, WITH_SPANS

FAMILIES = {  # family -> files under --models, by kind
    "gpt2": {"json": "bbpe/gpt2/tokenizer.json", "ranks": "tiktoken/r50k_base/r50k_base.tiktoken"},
    "cl100k": {"ranks": "tiktoken/cl100k_base/cl100k_base.tiktoken"},
    "o200k": {"ranks": "tiktoken/o200k_base/o200k_base.tiktoken"},
    "bert-base-uncased": {"json": "wordpiece/bert-base-uncased/tokenizer.json"},
    "bert-base-multilingual-cased": {"json": "wordpiece/bert-base-multilingual-cased/tokenizer.json"},
    "t5": {"model": "unigram/t5-nai/spiece.model", "json": "unigram/t5-small/tokenizer.json"},
    "xlnet": {
        "model": "unigram/xlnet-base-cased/spiece.model",
        "json": "unigram/xlnet-base-cased/tokenizer.json",
    },
    "sentencepiece-ja": {"model": "unigram/sentencepiece-test-ja/test_ja_model.model"},
    "mistral-v1": {"model": "sp-bpe/mistral-v1/tokenizer.model", "json": "sp-bpe/mistral-v1/tokenizer.json"},
}
KINDS = {
    "WordPiece": ("bert-base-uncased", "bert-base-multilingual-cased"),
    "unigram": ("t5", "xlnet", "sentencepiece-ja"),
    "SentencePiece BPE": ("mistral-v1",),
}
CORPORA = ("english", "code", "multi")
LIBRARIES = ("jittok", "gigatoken", "nanotoken", "splintr", "sentencepiece", "tiktoken", "tokenizers")
#: Where the name of the package is not that of the module.
PACKAGES = {"splintr": "splintr-rs"}
#: Slow libraries get less text; their MB/s does not depend on it.
TEXT_LIMIT = {"tokenizers": 2_000_000, "tiktoken": 6_000_000}
#: What others are measured by: the fastest library of a family besides jittok.
BASELINES = {
    "BPE": "gigatoken",
    "WordPiece": "nanotoken",
    "unigram": "sentencepiece",
    "SentencePiece BPE": "gigatoken",
}

WARM_UP = [
    "The quick brown fox's 12345 jumps over it.\n\n  def f(x):\treturn x + 1\n",
    "naïve café Ελληνικά русский текст 中文分词、日本語 한국어 العربية 👩‍👩‍👧\n",
]


START_UP = {
    "jittok": "import jittok; t = jittok.load({path!r}); ids = t.encode('Hello world').ids",
    "gigatoken": "import gigatoken; t = {load}; ids = t.encode('Hello world')",
    "nanotoken": "import nanotoken; t = nanotoken.Tokenizer({path!r}); ids = t.encode_batch(['Hello world']).ids",
    "tiktoken": (
        "import tiktoken, tiktoken_ext.openai_public as e; from tiktoken.load import load_tiktoken_bpe as l;"
        " e.load_tiktoken_bpe = lambda *a, **k: l({path!r});"
        " t = tiktoken.Encoding(**e.{name}()); ids = t.encode_to_numpy('Hello world')"
    ),
    "splintr": "import splintr; ids = splintr.from_json({path!r}).encode('Hello world')",
    "sentencepiece": (
        "from sentencepiece import SentencePieceProcessor as P; ids = P(model_file={path!r}).encode('Hello world')"
    ),
    "tokenizers": "from tokenizers import Tokenizer as T; ids = T.from_file({path!r}).encode('Hello world').ids",
}


def kind_of(family: str) -> str:
    return next((kind for kind, families in KINDS.items() if family in families), "BPE")


# ------------------------------------------------------------------------------------------------------- texts


def read_documents(path: str, limit: int, skip: int = 0) -> list[str]:
    """Whole documents from byte `skip` on, about `limit` bytes of them; a longer single document is cut."""
    with open(path, "rb") as file:
        file.seek(skip)
        content = file.read(limit)
    documents = [piece.decode("utf-8", "ignore") for piece in content.split(b"\0")]
    return [document for document in documents if document]


def japanese_documents(path: str, limit: int) -> list[str]:
    """Of the documents of a file, those of which two characters of three are kana, ideographs or their punctuation."""

    def is_japanese(text: str) -> bool:
        kana = sum("\u3040" <= character <= "\u30ff" for character in text)
        return 10 * kana > len(text) and 3 * sum(character >= "\u3000" for character in text) > 2 * len(text)

    return [text for text in read_documents(path, limit) if is_japanese(text)]


def documents_of(job: dict[str, Any]) -> list[str]:
    if os.path.basename(job["corpus"]) == "japanese.txt" and not os.path.exists(job["corpus"]):
        return japanese_documents(os.path.join(os.path.dirname(job["corpus"]), "multi.txt"), job["limit"])
    return read_documents(job["corpus"], job["limit"])


def short_strings(path: str, count: int = 50_000, length: int = 100) -> list[str]:
    text = " ".join(read_documents(path, count * length * 2))
    return [text[i * length : (i + 1) * length] for i in range(min(count, len(text) // length))]


def pathological() -> dict[str, str]:
    generator = random.Random(7)
    return {
        "1 MB of one letter": "a" * 1_000_000,
        "1 MB of random letters": "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=1_000_000)),
        "1 MB of blanks": " " * 1_000_000,
        "1 MB of base64": base64.b64encode(generator.randbytes(750_000)).decode(),
    }


# ------------------------------------------------------------------------------------------------------ worker


def timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Process CPU seconds (all threads), wall seconds, result."""
    gc.collect()
    gc.disable()
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    gc.enable()
    return cpu, wall, result


def peak_memory() -> float:
    """Megabytes that this process has had in memory at most."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1e3
    except (OSError, IndexError):
        pass  # not Linux, where ru_maxrss begins with what the process had that started this one
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One measurement, in a fresh process."""
    library = ADAPTERS[job["library"]](job["files"], job.get("threads", 1))
    mode = job["mode"]
    if mode == "memory":
        texts = documents_of(job)
        size, loaded = sum(len(text.encode("utf-8")) for text in texts), peak_memory()
        library.run(texts)
        return {"size": size, "loaded": loaded, "peak": peak_memory()}
    call = {"lists": library.lists, "spans": library.spans}.get(mode, library.run)
    for _ in range(2):
        call(WARM_UP)
    if mode == "pathological":
        answer: dict[str, Any] = {}
        for name, text in pathological().items():
            try:
                answer[name] = timed(lambda text=text: call([text]))[0]
            except BaseException as error:  # noqa: B036 - a panic of a native library is a BaseException
                answer[name] = type(error).__name__
        return answer
    if mode == "sample":
        texts = [
            text for path in job["corpora"] for text in documents_of({"corpus": path, "limit": job["limit"]})[:300]
        ]
        ids, indptr = library.arrays(library.run(texts))
        return {"ids": [ids[a:b].tolist() for a, b in zip(indptr[:-1], indptr[1:], strict=True)]}
    texts = short_strings(job["corpus"]) if mode == "short" else documents_of(job)
    size = sum(len(text.encode("utf-8")) for text in texts)
    cpu, wall, result = timed(lambda: call(texts))
    del result
    again = [timed(lambda: call(texts))[:2] for _ in range(job.get("repeats", 2))]
    return {
        "size": size,
        "cpu": cpu,
        "wall": wall,
        "repeat_cpu": min(one[0] for one in again),
        "repeat_wall": min(one[1] for one in again),
    }


def run_worker(job: dict[str, Any], environment: dict[str, str] | None = None) -> dict[str, Any]:
    threads = str(job.get("threads", 1))
    variables = {
        **os.environ,
        "RAYON_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "true" if threads != "1" else "false",
        **(environment or {}),
    }
    done = subprocess.run(
        [sys.executable, __file__, "--worker", json.dumps(job)], env=variables, capture_output=True, text=True
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "failed"}
    return json.loads(done.stdout.splitlines()[-1])


# ------------------------------------------------------------------------------------------------------ parent


@dataclasses.dataclass
class Plan:
    libraries: list[str]
    families: dict[str, dict[str, str]]
    corpora: dict[str, str]
    rounds: int
    limit: int

    def usable(self, family: str, libraries: Any = None) -> list[str]:
        return [
            name
            for name in self.libraries
            if all(kind in self.families[family] for kind in NEEDS[name])
            and kind_of(family) not in LACKS.get(name, ())
            and (libraries is None or name in libraries)
        ]

    def limit_of(self, library: str) -> int:
        return min(self.limit, TEXT_LIMIT.get(library, self.limit))


def interleaved(plan: Plan, family: str, libraries: list[str], job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The best of several rounds for each library, in turns."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(plan.rounds):
        for name in libraries:
            answer = run_worker(
                {"library": name, "files": plan.families[family], "limit": plan.limit_of(name), **job}
            )
            old = best.get(name)
            if old is None or "error" in old:
                best[name] = answer
            elif "error" not in answer:
                best[name] = {
                    key: min(old[key], answer[key]) if isinstance(answer[key], int | float) else answer[key]
                    for key in answer
                }
    return best


def rate(answer: dict[str, Any], key: str) -> float | None:
    return None if "error" in answer else answer["size"] / 1e6 / max(answer[key], 1e-9)


def compare_ids(plan: Plan, family: str) -> dict[str, str]:
    """How each library's ids differ from the reference's."""
    references = ("sentencepiece", "tiktoken", "tokenizers")
    reference = next((name for name in references if name in plan.usable(family)), None)
    if reference is None:
        return {}
    job = {
        "mode": "sample",
        "corpora": list(plan.corpora.values()),
        "limit": 300_000,
        "files": plan.families[family],
    }
    right = run_worker({"library": reference, **job})
    verdicts = {}
    for name in plan.usable(family):
        answer = run_worker({"library": name, **job})
        if "error" in answer or "error" in right:
            verdicts[name] = answer.get("error") or right["error"]
            continue
        wrong = sum(one != other for one, other in zip(answer["ids"], right["ids"], strict=True))
        verdicts[name] = f"{wrong} of {len(right['ids'])} documents differ" if wrong else "equal"
    return verdicts


def start_up(plan: Plan, family: str, jittok_file: str | None) -> list[tuple[str, float]]:
    """Wall seconds from the start of a process to its first ids, best of the rounds."""
    files = plan.families[family]
    variants: list[tuple[str, str, dict[str, str]]] = []
    for name in plan.usable(family):
        path = files["ranks"] if name == "tiktoken" else files.get("json") or files.get("ranks", "")
        if "model" in files and name in ("jittok", "sentencepiece"):
            path = files["model"]
        load = (
            f"gigatoken.Tokenizer({path!r})" if "json" in files else f"gigatoken.Tokenizer.from_tiktoken({path!r})"
        )
        code = START_UP[name].format(path=path, load=load, name=Path(path).stem)
        if name != "jittok":
            variants.append((name, code, {}))
            continue
        variants.append(("jittok, warm cache", code, {}))
        if jittok_file:
            from_file = START_UP[name].format(path=jittok_file)
            variants.append(("jittok, jittok file, warm cache", from_file, {}))
            variants.append(("jittok, jittok file, no cache", from_file, {"NUMBA_CACHE_DIR": "fresh"}))
    best: dict[str, float] = {}
    for _ in range(plan.rounds):
        for label, code, variables in variants:
            with tempfile.TemporaryDirectory() as fresh:
                environment = {**os.environ, **({key: fresh for key in variables})}
                # a user cache of any other kind must be empty too
                if variables:
                    environment["XDG_CACHE_HOME"] = environment["JITTOK_CACHE_DIR"] = fresh
                begin = time.perf_counter()
                done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
                seconds = time.perf_counter() - begin
            if done.returncode == 0:
                best[label] = min(best.get(label, 1e9), seconds)
    return list(best.items())


# ------------------------------------------------------------------------------------------------------ report


def cell(value: float | None, base: float | None, verdict: str = "equal") -> str:
    if value is None:
        return "-"
    ratio = f" ({value / base:.2f}x)" if base else ""
    mark = "" if verdict == "equal" else " *"
    return f"{value:,.0f}{ratio}{mark}" if value >= 20 else f"{value:.1f}{ratio}{mark}"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def rate_table(
    plan: Plan, results: dict[tuple[str, str], dict[str, Any]], key: str, verdicts: dict[str, dict[str, str]]
) -> str:
    rows = []
    libraries = [name for name in plan.libraries if any(name in answers for answers in results.values())]
    for (family, corpus), answers in results.items():
        baseline = BASELINES[kind_of(family)]
        base = rate(answers[baseline], key) if baseline in answers else None
        row = [family, corpus]
        for name in libraries:
            value = rate(answers[name], key) if name in answers else None
            row.append(cell(value, base, verdicts.get(family, {}).get(name, "equal")))
        rows.append(row)
    return table(["family", "corpus", *libraries], rows)


def machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}"


def plot(path: str, plan: Plan, results: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Bars of unseen text's MB/s, one group for each family and corpus."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 4.5), layout="constrained")
    keys = list(results)
    width = 0.8 / len(plan.libraries)
    for number, name in enumerate(plan.libraries):
        values = [rate(results[key][name], "cpu") or 0 if name in results[key] else 0 for key in keys]
        axes.bar(np.arange(len(keys)) + number * width, values, width, label=name)
    axes.set_xticks(np.arange(len(keys)) + 0.4 - width / 2, [f"{family}\n{corpus}" for family, corpus in keys])
    axes.set_ylabel("MB/s of CPU time, one thread, unseen text")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def save_jittok_file(plan: Plan, family: str, folder: str) -> str | None:
    """The family's model as a jittok file, made by jittok itself."""
    files = plan.families[family]
    path = str(Path(folder) / "model.jittok")
    source = next(files[kind] for kind in ("model", "json", "ranks") if kind in files)
    code = f"import jittok; jittok.load({source!r}).save({path!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    return path if done.returncode == 0 and os.path.exists(path) else None


def report(plan: Plan, parts: set[str], raw: dict[str, Any], picture: str | None) -> str:
    """Measure everything and return the Markdown."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(PACKAGES.get(name, name))}" for name in plan.libraries
    )
    out = [
        f"Measured by `scripts/compare_peers.py` on {machine()}; {versions}; best of {plan.rounds} interleaved"
        f" rounds. MB/s (10^6 bytes of UTF-8); in brackets the ratio to gigatoken"
        " (WordPiece: nanotoken, unigram: sentencepiece)."
        " `*`: ids differ from the reference's.\n"
    ]
    verdicts = {family: compare_ids(plan, family) for family in plan.families}
    raw["ids"] = verdicts
    rows = [[family, name, verdict] for family, one in verdicts.items() for name, verdict in one.items()]
    out.append("### Ids\n\n" + table(["family", "library", "against the reference"], rows))

    if "throughput" in parts:
        results = {}
        for family in plan.families:
            for corpus, path in plan.corpora.items():
                print(f"{family} {corpus}", file=sys.stderr)
                job = {"mode": "throughput", "corpus": path}
                results[family, corpus] = interleaved(plan, family, plan.usable(family), job)
        raw["throughput"] = {"/".join(key): value for key, value in results.items()}
        out.append(
            "### Text not seen before, CPU time, one thread\n\n" + rate_table(plan, results, "cpu", verdicts)
        )
        out.append("### The same text again\n\n" + rate_table(plan, results, "repeat_cpu", verdicts))
        if picture:
            plot(picture, plan, results)

    extra = [
        ("short", "50,000 strings of 100 characters, CPU time", "cpu", None, {}),
        ("lists", "Python lists instead of arrays, CPU time", "cpu", None, {}),
        ("spans", "With spans, CPU time", "cpu", WITH_SPANS, {}),
        ("threads", "Two threads, wall time", "wall", None, {"threads": 2}),
    ]
    corpus = "english" if "english" in plan.corpora else next(iter(plan.corpora))
    for mode, title, key, libraries, more in extra:
        if mode not in parts:
            continue
        results = {}
        for family in plan.families:
            if not plan.usable(family, libraries):
                continue
            print(f"{mode} {family}", file=sys.stderr)
            job = {"mode": mode, "corpus": plan.corpora[corpus], **more}
            results[family, corpus] = interleaved(plan, family, plan.usable(family, libraries), job)
        raw[mode] = {"/".join(key): value for key, value in results.items()}
        out.append(f"### {title}\n\n" + rate_table(plan, results, key, verdicts))
        if mode == "threads":
            out.append(f"### {title}, the same text again\n\n" + rate_table(plan, results, "repeat_wall", verdicts))

    if "memory" in parts:
        rows = []
        for family in plan.families:
            print(f"memory {family}", file=sys.stderr)
            answers = interleaved(plan, family, plan.usable(family), {"mode": "memory", "corpus": plan.corpora[corpus]})
            raw.setdefault("memory", {})[family] = answers
            for name, answer in answers.items():
                if "error" not in answer:
                    row = [f"{answer['size'] / 1e6:.0f}", f"{answer['loaded']:.0f}", f"{answer['peak']:.0f}"]
                    rows.append([family, name, *row])
        header = ["family", "library", "MB of text", "MB before encoding", "MB at most"]
        out.append("### Memory of a process: loaded, with its text, and after encoding it\n\n" + table(header, rows))

    ordinary = [family for family in plan.families if kind_of(family) == "BPE"]
    hard = ["cl100k" if "cl100k" in ordinary else ordinary[0]] if ordinary else []
    for family in hard + [family for family in plan.families if family not in ordinary]:
        if "pathological" not in parts:
            continue
        print(f"pathological {family}", file=sys.stderr)
        libraries = plan.usable(family)
        answers = interleaved(plan, family, libraries, {"mode": "pathological"})
        raw.setdefault("pathological", {})[family] = answers
        rows = []
        for name in pathological():
            row = [name]
            for library in libraries:
                value = answers.get(library, {}).get(name, "-")
                row.append(f"{value:.4f}" if isinstance(value, float) else str(value))
            rows.append(row)
        out.append(f"### Hard inputs, {family}, CPU seconds\n\n" + table(["input", *libraries], rows))

    if "start-up" in parts:
        rows = []
        for family in plan.families:
            print(f"start-up {family}", file=sys.stderr)
            with tempfile.TemporaryDirectory() as folder:
                found = start_up(plan, family, save_jittok_file(plan, family, folder))
            raw.setdefault("start-up", {})[family] = found
            rows += [[family, label, f"{seconds:.2f}"] for label, seconds in found]
        title = "### Start of a process to first ids, wall seconds\n\n"
        out.append(title + table(["family", "library", "seconds"], rows))
    return "\n".join(out)


PARTS = ("throughput", "short", "lists", "spans", "threads", "memory", "pathological", "start-up")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, help="folder with bbpe/ and tiktoken/")
    parser.add_argument("--model", action="append", default=[], metavar="FAMILY=FILE",
                        help="tokenizer.json or .tiktoken file of a family; repeatable")  # fmt: skip
    parser.add_argument("--corpora", type=Path, required=True, help="folder with english.txt, code.txt, multi.txt")
    parser.add_argument("--corpus", action="append", help="only these corpora; repeatable")
    parser.add_argument("--family", action="append", help="only these families; repeatable")
    parser.add_argument("--library", dest="libraries", action="append", help="only these libraries; repeatable")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these measurements; repeatable")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--megabytes", type=float, default=20, help="of each corpus at most (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="Markdown file (default: standard output)")
    parser.add_argument("--json", type=Path, help="raw numbers")
    parser.add_argument("--plot", help="PNG or SVG file")
    options = parser.parse_args()

    families: dict[str, dict[str, str]] = {}
    for family, files in FAMILIES.items():
        if options.models:
            paths = {kind: str(options.models / path) for kind, path in files.items()}
            families[family] = {kind: path for kind, path in paths.items() if os.path.exists(path)}
    for item in options.model:
        family, _, path = item.partition("=")
        kind = "json" if path.endswith(".json") else "model" if path.endswith((".model", ".spm")) else "ranks"
        families.setdefault(family, {})[kind] = path
    families = {name: files for name, files in families.items() if files and name in (options.family or families)}
    corpora = {name: str(options.corpora / f"{name}.txt") for name in options.corpus or CORPORA}
    corpora = {name: path for name, path in corpora.items() if os.path.exists(path) or name == "japanese"}
    libraries = [name for name in options.libraries or LIBRARIES if importlib.util.find_spec(name)]
    if not (families and corpora and libraries):
        parser.error(f"nothing to do: families {list(families)}, corpora {list(corpora)}, libraries {libraries}")
    plan = Plan(libraries, families, corpora, options.rounds, int(options.megabytes * 1e6))
    raw: dict[str, Any] = {}
    text = report(plan, set(options.part or PARTS), raw, options.plot)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text)
    if options.json:
        options.json.write_text(json.dumps(raw, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--worker":
        print(json.dumps(work(json.loads(sys.argv[2]))))
    else:
        raise SystemExit(main())
