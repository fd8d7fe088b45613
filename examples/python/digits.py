"""Trains LeNet on digits that the library draws, or on MNIST's files:   digits.py [EPOCHS [FOLDER]]"""
import sys

import tutti

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
data = tutti.data.open(sys.argv[2] if len(sys.argv) > 2 else "digits")
trainer = tutti.Trainer(tutti.models.lenet(classes=data.classes, input=data.shape), loss="cross_entropy", optimizer=tutti.SGD(0.05, momentum=0.9), seed=1)
trainer.fit(data, epochs=epochs, batch_size=64)

x, y = data.tests.arrays()
print(f"accuracy {trainer.evaluate(x, y).accuracy:.4f} of {len(y)} digits; the first: {trainer.predict(x[:8]).argmax(1)}, in truth {y[:8]}")
