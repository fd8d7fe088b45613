"""Tokenizers: opening, learning, ids and texts, batches, JSON, pickling; and what they refuse."""
import copy
import pickle

import numpy
import pytest

import tutti

TEXTS = ["a good film", "a good day", "", "A bad film"]


@pytest.fixture
def words():
    return tutti.Tokenizer.train(TEXTS, "words", lowercase=True)


def test_bytes():
    with tutti.Tokenizer("bytes") as tokenizer:
        ids = tokenizer.encode("a\0\u00e4")
        assert ids.dtype == numpy.int32 and ids.tolist() == [97, 0, 195, 164]
        assert len(tokenizer) == 256 and tokenizer.decode(ids[2:]) == "\u00e4"
        assert tokenizer.encode("").shape == (0,)
    with pytest.raises(ValueError, match="closed"):
        tokenizer.encode("a")


def test_learned(words, tmp_path):
    assert [words.token(i) for i in range(len(words))] == ["[UNK]", "a", "good", "film"]
    assert words.encode("A good dog").tolist() == [1, 2, 0]
    assert (words.id("film"), words.id("dog"), words.token(99), words.end) == (3, None, None, None)
    (tmp_path / "tokenizer.json").write_text(words.json())
    for same in (tutti.Tokenizer(tmp_path), tutti.Tokenizer.from_json(words.json()), pickle.loads(pickle.dumps(words)), copy.deepcopy(words)):
        assert same.json() == words.json() and same.encode("good").tolist() == [2]
    special = tutti.Tokenizer.train(iter(TEXTS), tokens=300, special=["<end>"], least=1)
    assert special.token(0) == "<end>" and special.decode(special.encode("a bad <end>")) == "a bad "
    assert special.decode(special.encode("a bad <end>"), special=True) == "a bad <end>"


def test_batches(words):
    ids, lengths = words.encode_batch(TEXTS)
    assert ids.tolist() == [[1, 2, 3], [1, 2, 0], [-1, -1, -1], [1, 0, 3]] and lengths.tolist() == [3, 3, 0, 3]
    assert words.decode(ids[0]) == "a good film"
    ids, lengths = words.encode_batch(TEXTS[:2], length=2)
    assert ids.tolist() == [[1, 2], [1, 2]] and lengths.tolist() == [2, 2]
    ids, lengths = words.encode_batch(["film"], length=3)
    assert ids.tolist() == [[3, -1, -1]] and lengths.tolist() == [1]
    ids, lengths = words.encode_batch([])
    assert ids.shape == (0, 0) and lengths.shape == (0,)
    assert words.encode(("a film", "good")).tolist() == [1, 3, 2]
    assert words.encode("a good film", most=1).tolist() == [1]


def test_refusals(words, tmp_path):
    with pytest.raises(tutti.Error, match="none.json"):
        tutti.Tokenizer(tmp_path / "none.json")
    with pytest.raises(tutti.Error):
        tutti.Tokenizer.from_json("{")
    with pytest.raises(tutti.Error, match="magic"):
        tutti.Tokenizer.train(TEXTS, "magic")
    with pytest.raises(TypeError, match="a text is a str, not bytes"):
        words.encode(b"a")
    for call in (words.encode_batch, tutti.Tokenizer.train):
        with pytest.raises(TypeError, match="give a list"):
            call("a good film")
    with pytest.raises(TypeError, match="one dimension"):
        words.decode([[1]])
    with pytest.raises(TypeError, match="whole numbers"):
        words.decode([0.5])
    with pytest.raises(ValueError, match="32 bits"):
        words.decode([2**40])
    with pytest.raises(ValueError, match="length is -1"):
        words.encode_batch(TEXTS, length=-1)
    words.decode([99, -1])      # an id that the vocabulary does not have
