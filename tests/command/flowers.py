"""Tables of flowers: a kind that follows from two lengths."""
import random

KINDS = "versicolor", "setosa", "virginica"


def rows(count, seed):
    """Rows whose class follows from both lengths."""
    dice = random.Random(seed)
    made = []
    for i in range(count):
        kind = i % 3
        made.append({"id": i, "sepal": f"{5 + kind + dice.gauss(0, 0.2):.3f}",
                     "petal": f"{100 - 30 * kind + dice.gauss(0, 5):.3f}", "species": KINDS[kind]})
    return made


def write(path, rows, *names):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([",".join(names)] + [",".join(str(row[name]) for name in names) for row in rows]) + "\n")
