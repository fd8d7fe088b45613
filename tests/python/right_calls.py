"""Calls that a type checker takes: arrays of numpy where the package takes lists of numbers."""
import numpy

import tutti

net = tutti.Network()
ids, lengths = numpy.zeros((8, 9), "int32"), numpy.full(8, 9)
words = net.input("words", tutti.SEQUENCE, "int32")
factors = net.parameter("factors", 4, values=numpy.ones(4, "float32"))
output = tutti.dense(tutti.normalise(net.input("x", (3, 8, 8)), mean=numpy.zeros(3), std=[1, 1, 1]), 2)
loss = tutti.cross_entropy(output, net.input("targets", (), "int32"), class_weights=numpy.ones(2))
trainer = tutti.Trainer(output, loss=[loss], loss_weights=numpy.ones(1), shares=numpy.ones(1))
trainer.fit(ids, lengths, validation_data=(ids, lengths), lengths=lengths, val_lengths=lengths, buckets=2)
trainer.fit(ids, lengths, validation_data=(ids, lengths), lengths=[9] * 8, val_lengths=[9] * 8)
