"""Classifies texts of any length: bytes, an embedding, the mean over the text.   text.py [EPOCHS]

Batches come from a function; each has texts of its own length."""
import random
import sys

import numpy

import tutti

MOST = 64
PARTS = {"weather": ["rain", "sun", "wind", "snow", "clouds", "a storm"], "food": ["bread", "soup", "cheese", "an apple", "rice", "cake"]}
FORMS = ["today there is {}", "{} again", "we had {} and {}", "much {} this evening", "no {}, but {}"]
chosen = random.Random(1)


def texts(count):
    for _ in range(count):
        label = chosen.randrange(len(PARTS))
        words = list(PARTS.values())[label]
        yield chosen.choice(FORMS).format(chosen.choice(words), chosen.choice(words)), label


def batch_of(samples):
    """Bytes, padded with zeros to the longest text, and how long each is."""
    coded = [text.encode()[:MOST] for text, _ in samples]
    ids = numpy.zeros((len(coded), -(-max(map(len, coded)) // 16) * 16), "int32")     # few lengths: each has a plan of its own
    for row, text in zip(ids, coded):
        row[:len(text)] = list(text)
    return ids, numpy.array([label for _, label in samples])


train, test = list(texts(512)), list(texts(128))


def batches():
    chosen.shuffle(train)
    for begin in range(0, len(train), 32):
        yield batch_of(train[begin:begin + 32])


network = tutti.Network()
ids = network.input("ids", tutti.SEQUENCE, "int32")
states = tutti.gelu(tutti.dense(tutti.embedding(ids, 256, 32), 64))
output = tutti.dense(tutti.reduce_mean(states, axes=0, keepdims=False), len(PARTS), name="fc")
trainer = tutti.Trainer(output, loss="cross_entropy", optimizer=tutti.Adam(0.005), batch_size=32, sequence=MOST, seed=1)
trainer.fit(batches, epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 10, validation_data=[batch_of(test)])
print(f"accuracy {trainer.evaluate([batch_of(test)]).accuracy:.4f} of {len(test)} texts")
