"""Calls with wrong types, each of which a type checker refuses: mypy says so where one of these comments is not needed."""
import numpy

import tutti

net = tutti.Network()
x = net.input("x", (3, 8, 8))
net.input("y", "3")                                             # type: ignore[arg-type]
net.input("y", 3, "float33")                                    # type: ignore[arg-type]
tutti.conv2d(x, "16", 3)                                        # type: ignore[arg-type]
tutti.conv2d(x, 16)                                             # type: ignore[call-arg]
tutti.conv2d(x, 16, 3, pading=1)                                # type: ignore[call-arg]
tutti.conv2d(x, 16, 3, init="he")                               # type: ignore[arg-type]
tutti.conv2d("x", 16, 3)                                        # type: ignore[arg-type]
tutti.pool(x, "largest", 2)                                     # type: ignore[arg-type]
tutti.relu6(x, alpha=1)                                         # type: ignore[call-arg]
tutti.resize(x, mode="cubical")                                 # type: ignore[arg-type]
tutti.no_such_operation(x)                                      # type: ignore[attr-defined]
tutti.models.resnet19()                                         # type: ignore[attr-defined]
tutti.models.lenet(classes="ten")                               # type: ignore[arg-type]
last: tutti.Tensor = tutti.lstm(x, 3, last_h=True)              # type: ignore[assignment]
y, state = tutti.lstm(x, 3)                                     # type: ignore[misc]
tutti.SGD("0.1")                                                # type: ignore[arg-type]
tutti.SGD(0.1, beta1=0.9)                                       # type: ignore[call-arg]
trainer = tutti.Trainer(net, loss="mse", precision="half")      # type: ignore[arg-type]
trainer = tutti.Trainer(net, loss="mse", sed=1)                 # type: ignore[call-arg]
trainer = tutti.Trainer(net, loss=3)                            # type: ignore[arg-type]
trainer.fit(numpy.zeros(3), numpy.zeros(3), epochs="2")         # type: ignore[arg-type]
trainer.fit(numpy.zeros(3), numpy.zeros(3), schedule="cosin")   # type: ignore[arg-type]
trainer.fit(numpy.zeros(3), epoch=3)                            # type: ignore[call-arg]
trainer.learning_rate = "0.1"                                   # type: ignore[assignment]
trainer.evaluate(numpy.zeros(3)).los                            # type: ignore[attr-defined]
trainer.parameters[3]                                           # type: ignore[index]
tutti.callbacks.EarlyStopping(patience="3")                     # type: ignore[arg-type]
tutti.data.folder("x", heigth=3)                                # type: ignore[call-arg]
