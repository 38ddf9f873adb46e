"""Ray and Spark, on engines that run on this machine."""

import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jittok
from jittok.errors import ArgumentError

TEXTS = ["To be, or not to be", "", "naïve café", None, "中文 text", "that is the question: " * 20, None, "the end"]
ROWS = 400


@pytest.fixture(scope="module")
def tok():
    return jittok.load_default()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A Parquet file of several row groups."""
    path = tmp_path_factory.mktemp("corpus") / "texts.parquet"
    texts = [text if text is None else f"{text} {number % 7}" for number, text in enumerate(TEXTS * (ROWS // len(TEXTS)))]
    pq.write_table(pa.table({"id": range(ROWS), "text": pa.array(texts)}), path, row_group_size=50)
    return path


@pytest.fixture(scope="module")
def expected(tok, corpus):
    """What this machine alone makes of it."""
    return tok.encode_arrow(pq.read_table(corpus)["text"]).to_pylist()


@pytest.fixture(scope="module")
def counted(corpus):
    return jittok.count_words(pq.read_table(corpus)["text"].drop_null(), pre_tokenizer="Whitespace")


@pytest.mark.filterwarnings("ignore")
class TestRay:
    @pytest.fixture(scope="class")
    def ray(self):
        ray = pytest.importorskip("ray", reason="needs Ray: pip install 'jittok[ray]'")
        pytest.importorskip("ray.data", reason="needs Ray Data: pip install 'jittok[ray]'")
        environment = {"env_vars": {"JITTOK_BACKGROUND": "0", "PYTHONPATH": os.pathsep.join(__import__("sys").path)}}
        # The actors have a processor each, and what reads the file needs one too.
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env=environment)
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray
        ray.shutdown()

    def test_two_actors(self, ray, tok, corpus, expected):
        from jittok.interop.ray import Encoder

        data = ray.data.read_parquet(str(corpus), override_num_blocks=4).map_batches(
            Encoder,
            fn_constructor_kwargs=Encoder.arguments(tok, "text"),
            batch_format="pyarrow",
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        rows = sorted(data.take_all(), key=lambda row: row["id"])
        assert [row["id"] for row in rows] == list(range(ROWS))
        assert [None if row["input_ids"] is None else list(row["input_ids"]) for row in rows] == expected

    def test_a_failed_task_is_tried_again(self, ray, tok, corpus, expected, tmp_path):
        from jittok.interop.ray import Encoder

        mark = str(tmp_path / "failed")

        class Failing(Encoder):
            def __call__(self, batch):
                if not os.path.exists(mark):
                    open(mark, "w").close()
                    os._exit(1)  # as when the machine goes down
                return super().__call__(batch)

        data = ray.data.read_parquet(str(corpus), override_num_blocks=4).map_batches(
            Failing,
            fn_constructor_kwargs=Encoder.arguments(tok, "text"),
            batch_format="pyarrow",
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        rows = sorted(data.take_all(), key=lambda row: row["id"])
        assert os.path.exists(mark)
        assert [None if row["input_ids"] is None else list(row["input_ids"]) for row in rows] == expected

    def test_words_are_counted(self, ray, corpus, counted):
        from jittok.interop.ray import count_words

        data = ray.data.read_parquet(str(corpus), override_num_blocks=4).filter(lambda row: row["text"] is not None)
        assert count_words(data, "text", pre_tokenizer="Whitespace") == counted


@pytest.mark.filterwarnings("ignore")
class TestSpark:
    @pytest.fixture(scope="class")
    def spark(self, tmp_path_factory):
        pytest.importorskip("pyspark", reason="needs Spark: pip install 'jittok[spark]'")
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java 17 or newer, and there is no java")
        from pyspark.sql import SparkSession

        folder = str(tmp_path_factory.mktemp("spark"))
        os.environ.setdefault("PYSPARK_PYTHON", __import__("sys").executable)
        builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.sql.warehouse.dir", folder).config("spark.local.dir", folder)
        session = builder.config("spark.sql.files.maxPartitionBytes", "20000").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()

    def test_two_workers(self, spark, tok, corpus, expected):
        from jittok.interop.spark import encode

        frame = spark.read.parquet(str(corpus)).repartition(4)
        rows = sorted(encode(frame, "text", tok).collect(), key=lambda row: row["id"])
        assert [row["id"] for row in rows] == list(range(ROWS))
        assert [row["input_ids"] for row in rows] == expected

    def test_a_failed_task_is_tried_again(self, spark, tok, corpus, expected, tmp_path):
        from jittok.interop.spark import encode

        mark = str(tmp_path / "failed")

        def fail_once(batches):
            for batch in batches:
                if not os.path.exists(mark):
                    open(mark, "w").close()
                    raise RuntimeError("as when the machine goes down")
                yield batch

        frame = encode(spark.read.parquet(str(corpus)).repartition(4), "text", tok)
        rows = sorted(frame.mapInArrow(fail_once, frame.schema).collect(), key=lambda row: row["id"])
        assert os.path.exists(mark)
        assert [row["input_ids"] for row in rows] == expected

    def test_words_are_counted(self, spark, corpus, counted):
        from jittok.interop.spark import count_words

        frame = spark.read.parquet(str(corpus)).repartition(3)
        assert count_words(frame, "text", pre_tokenizer="Whitespace") == counted

    def test_wrong_columns(self, spark, tok, corpus):
        from jittok.interop.spark import count_words, encode

        frame = spark.read.parquet(str(corpus))
        with pytest.raises(ArgumentError, match="there are id, text"):
            encode(frame, "other", tok)
        with pytest.raises(ArgumentError, match="already"):
            encode(frame, "text", tok, output="id")
        with pytest.raises(ArgumentError, match="there are id, text"):
            count_words(frame, "other")
