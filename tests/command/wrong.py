"""Wrong uses and what the command answers: the lines of wrong.txt."""
import re
import shlex
import struct
import zlib

import harness

KINDS = "setosa", "virginica", "versicolor"


def png(path, seed, side=16):
    """A grey picture."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + bytes((seed * 37 + x * y) % 256 for x in range(side)) for y in range(side))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class WrongUses(harness.CommandTest):
    def write_files(self):
        for i in range(6):
            for seed, name in enumerate(("pets/cat", "pets/dog", "one/cat")):
                png(self.folder / name / f"{i}.png", 50 * seed + i)
        (self.folder / "empty").mkdir()
        head = "nr,sepal,petal,species"
        rows = [f"{i},{5 + i % 3}.{i % 10},{10 - i % 3 * 3}.5,{KINDS[i % 3]}" for i in range(60)]
        text = "\n".join(rows) + "\n"
        for name, content in (("flowers.csv", f"{head}\n{text}"), ("same.csv", "\n".join([head, *rows[::3]])),
                              ("fewer.csv", "\n".join([head, *rows[:50]])),
                              ("typo.csv", f"{head}\n{text.replace('setosa', 'setossa')}"),
                              ("short.csv", f"{head.replace('petal', 'petl')}\n{text}"),
                              ("ragged.csv", "\n".join([head, *rows[:20], "1,2", *rows])), ("void.csv", ""),
                              ("words.csv", f"{head}\n{text.replace('5.3', 'five')}"), ("only.csv", "a\n1\n2\n3\n"),
                              ("cut.safetensors", "\x7f\0\0\0\0\0\0\0{"), ("notes.txt", "notes\n"), ("pq.parquet", "PAR1"),
                              ("sheet.xlsx", "PK"), ("x.feather", "ARROW1"), ("archive.zip", "PK"), ("net.pth", "PK"),
                              ("net.pt", "PK"), ("net.h5", "\x7fHDF"), ("net.keras", "PK")):
            (self.folder / name).write_text(content)
        self.good("train", "mlp", "--data", "flowers.csv", "--steps", "1", "--save", "m")
        self.good("train", "lenet", "--steps", "1", "--save", "lenet")

    def test_wrong_uses(self):
        self.write_files()
        lines = (harness.SOURCE / "tests/command/wrong.txt").read_text().splitlines()
        uses = [line.split(" | ", 2) for line in lines if line and not line.startswith("#")]
        self.assertGreaterEqual(len(uses), 40)
        for use, status, message in uses:
            with self.subTest(use):
                outcome = self.tutti(*shlex.split(use))
                self.assertEqual(outcome.status, int(status), outcome)
                answer = outcome.errors.splitlines()[-1]
                pattern = ".*".join(map(re.escape, message.split("...")))
                if not re.fullmatch(pattern, answer):
                    self.assertEqual(answer, message, use)
                self.assertEqual(outcome.output, "")


harness.main()
