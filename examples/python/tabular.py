"""Predicts a column of a table:   tabular.py FILE.csv COLUMN [EPOCHS]"""
import sys

import tutti

data = tutti.data.table(sys.argv[1], sys.argv[2], seed=1)
print(data)
network = tutti.models.tabular(classes=data.classes or 1, input=data.shape, samples=len(data.train))
trainer = tutti.Trainer(network, loss="cross_entropy" if data.classes else "mse", optimizer=tutti.AdamW(0.003), seed=1)
stopping = tutti.callbacks.EarlyStopping(patience=10, restore_best=True)
trainer.fit(data, epochs=int(sys.argv[3]) if len(sys.argv) > 3 else 60, batch_size=32, callbacks=[stopping])
outputs = trainer.predict(data.tests)
for row in range(min(5, len(outputs))):
    print(data.tests.name(row), data.class_names[outputs[row].argmax()] if data.classes else data.in_units(outputs[row]))
print(f"loss {trainer.evaluate(data).loss:.4f}" + (f", accuracy {trainer.evaluate(data).accuracy:.4f}" if data.classes else ""))
