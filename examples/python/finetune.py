"""Fine-tunes a network on a folder of pictures, FOLDER/CLASS/PICTURE:   finetune.py FILE.onnx FOLDER [EPOCHS]

The last layer is new and trains alone first; then all layers train at a lower rate, and the best epoch is kept."""
import sys

import tutti

file, folder, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5
channels, height, width = tutti.load(file).inputs["input"].shape
data = tutti.data.folder(folder, channels=channels, height=height, width=width, augment="crop,flip", seed=1)
print(data)

network = tutti.load(file, head=data.classes)
head = [name for name, _, _, count in network.layers() if count][-1]
network.freeze("*")
network.unfreeze(head + ".*")
first = tutti.Trainer(network, loss="cross_entropy", optimizer=tutti.AdamW(0.01))
first.fit(data, epochs=epochs, batch_size=16)

weights = {name: values.numpy() for name, values in first.parameters.items()}
whole = tutti.Trainer(tutti.load(file, head=data.classes), loss="cross_entropy", optimizer=tutti.AdamW(0.0005))
whole.parameters = weights
whole.fit(data, epochs=epochs, batch_size=16, callbacks=[tutti.callbacks.Best()])
print(f"accuracy {whole.evaluate(data).accuracy:.4f}")
