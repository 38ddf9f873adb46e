"""Tokens painted on text."""

import pickle
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import model_path

import jittok
from jittok.errors import ArgumentError
from jittok.painting import MOST_TOKENS, as_ansi, as_html, painted_parts


@pytest.fixture(scope="module")
def tok():
    return jittok.load_default()


def check(encoding, *texts):
    parts = list(painted_parts(encoding))
    assert "".join(part.text for part in parts) == "".join(texts)
    assert [number for part in parts for number, _ in part.tokens] == encoding.ids.tolist()
    return parts


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_the_parts_are_the_text(text):
    check(jittok.load_default().encode(text), text)


@pytest.mark.parametrize(
    "name", ["wordpiece/bert-base-uncased/tokenizer.json", "unigram/t5-small/tokenizer.json", "bbpe/llama3/tokenizer.json"]
)
def test_other_models(name):
    tok = jittok.load(model_path(name))
    first, second = " Héllo,  wörld\u3000\U0001f642! ", "and\nmore "
    encoding = tok.encode(first)
    parts = check(encoding, first)
    assert sum(part.is_special for part in parts) == encoding.special_tokens_mask.sum()
    check(tok.encode(first, second), first, second)


def test_tokens_that_share_a_character_are_one_part(tok):
    parts = check(tok.encode("\U00013000"), "\U00013000")
    assert len(parts) == 1 and len(parts[0].tokens) > 1


class Checker(HTMLParser):
    """Whether every tag is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.titles, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.titles += [value for name, value in attrs if name == "title"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def parsed(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


def test_html(tok):
    text = 'if a < b & "c":\n  <script>alert(1)</script>'
    encoding = tok.encode(text)
    page = parsed(encoding._repr_html_())
    assert "<script>" not in encoding._repr_html_()
    assert page.text.replace("\u23ce", "") == f"{len(encoding)} tokens{text}"
    assert [int(number) for title in page.titles for number in re.findall(r"^(\d+): ", title, re.M)] == encoding.ids.tolist()
    assert parsed(tok.encode("")._repr_html_()).text == "0 tokens"
    long = parsed(as_html(tok.encode("a b " * MOST_TOKENS)))
    assert "tokens more" in long.text and len(long.titles) <= MOST_TOKENS


def test_terminal(tok):
    encoding = tok.encode("two lines\nhere")
    painted = as_ansi(encoding)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == "two lines\nhere"
    assert all(line.endswith("\x1b[0m") for line in painted.split("\n") if line)
    assert as_ansi(encoding, colours=False).replace("[", "").replace("]", "") == "two lines\nhere"


def test_without_text(tok):
    batch = tok.encode_batch(["a text"])
    assert "Encoding" in batch[0]._repr_html_() and parsed(batch[0]._repr_html_())
    with pytest.raises(ArgumentError, match="spans=True"):
        as_html(batch[0])
    assert "jittok-token" in as_html(pickle.loads(pickle.dumps(tok.encode("a text"))))
    assert "jittok-token" in tok.encode_batch(["a text"], spans=True)[0]._repr_html_()
