"""Generators: logits as those of the whole text, drawn tokens, and what they refuse."""
import numpy
import pytest

import tutti

VOCABULARY, WIDTH = 11, 8


def language_model(causal=True):
    network = tutti.Network()
    ids = network.input("ids", (tutti.SEQUENCE,), "int32")
    x = tutti.embedding(ids, VOCABULARY, WIDTH, name="embedding")
    x = tutti.attention(x, tutti.dense(x, WIDTH), tutti.dense(x, WIDTH), heads=2, causal=causal)
    return tutti.dense(x, VOCABULARY)


@pytest.fixture
def trainer():
    logits = language_model()
    return tutti.Trainer(logits, sequence=12, batch_size=2, seed=3)


def test_logits(trainer):
    ids = numpy.random.default_rng(1).integers(0, VOCABULARY, (2, 12)).astype(numpy.int32)
    whole = trainer.predict(ids)
    with tutti.Generator(trainer, length=12, texts=2) as generator:
        for begin, end in ((0, 5), (5, 6), (6, 12)):
            assert numpy.allclose(generator.feed(ids[:, begin:end]), whole[:, end - 1], atol=1e-5)
        assert len(generator) == 12
        with pytest.raises(ValueError, match="more than the generator"):
            generator.feed(ids[:, :1])
        generator.reset()
        assert generator.feed(ids[0, :5].astype(numpy.int64)).shape == (VOCABULARY,)
    with pytest.raises(ValueError, match="closed"):
        generator.reset()


def test_texts(trainer):
    generator = tutti.Generator(trainer, length=12)
    likeliest = generator.generate([1, 2, 3], 6)
    assert likeliest.dtype == numpy.int32 and len(likeliest) == 6
    for i, token in enumerate(likeliest):
        text = numpy.concatenate([[1, 2, 3], likeliest[:i]]).astype(numpy.int32)
        assert trainer.predict(text[None])[0, -1].argmax() == token
    assert generator.generate([1, 2, 3], 6, ends=[likeliest[2]]).tolist() == likeliest[:likeliest.tolist().index(likeliest[2])].tolist()
    drawn = [generator.generate([1], 8, temperature=5, seed=seed).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(generator.generate([1, 2, 3])) == 12 - 3 + 1
    assert [*generator.stream([1], 0)] == []


def test_refusals(trainer):
    generator = tutti.Generator(trainer, length=4)
    with pytest.raises(TypeError, match="whole numbers"):
        generator.feed([0.5])
    with pytest.raises(ValueError, match="from 0 to 10"):
        generator.feed([11])
    with pytest.raises(ValueError, match="no tokens"):
        generator.feed(numpy.empty(0, numpy.int32))
    with pytest.raises(ValueError, match="top_p"):
        generator.generate([1], 1, temperature=1, top_p=2)
    logits = language_model(causal=False)
    with pytest.raises(tutti.UnsupportedError, match="later tokens"):
        tutti.Generator(tutti.Trainer(logits, sequence=4))
    net = tutti.Network()
    y = tutti.dense(net.input("x", (3,)), 2)
    with pytest.raises(ValueError, match="int32"):
        tutti.Generator(tutti.Trainer(y))
