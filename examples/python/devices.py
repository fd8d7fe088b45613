"""Trains on one device and on all of them, of any vendors, with the same result:   devices.py [EPOCHS [FOLDER]]"""
import sys

import numpy

import tutti

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
data, losses = tutti.data.open(sys.argv[2] if len(sys.argv) > 2 else "digits"), {}
for chosen in ("0", "all"):
    runtime = tutti.Runtime(chosen)
    network = tutti.models.lenet(classes=data.classes, input=data.shape, runtime=runtime)
    trainer = tutti.Trainer(network, loss="cross_entropy", optimizer=tutti.SGD(0.05, momentum=0.9), seed=1, sharing="equal")
    losses[chosen] = trainer.fit(data, epochs=epochs, batch_size=64)["loss"]
    print(", ".join(device.name for device in runtime.devices), losses[chosen])
assert numpy.allclose(losses["0"], losses["all"], rtol=1e-2)
