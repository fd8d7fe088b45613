"""Recordings with transcripts: the forms in which people have them, a training, and what a network hears."""
import array
import json
import math
import random
import unittest
import wave

from harness import CommandTest, main

RATE = 8000
WORDS = ("ab", "cab", "dad", "bed", "ace")
SMALL = {"width": 48, "hidden_size": 64, "num_hidden_layers": 1, "dropout": 0}


def letter(character, draw):
    """Two tones that only this letter has, of a random length."""
    number, samples = ord(character) - ord("a"), int(RATE * draw.uniform(0.10, 0.16))
    tones = [2 * math.pi * hertz / RATE for hertz in (300 + 200 * number, 1500 + 350 * number)]
    return [math.sin(math.pi * t / samples) * (0.5 * math.sin(tones[0] * t) + 0.35 * math.sin(tones[1] * t)) for t in range(samples)]


def speak(path, text, draw):
    """Writes a recording of made speech, with noise."""
    sound = [0.0] * 400
    for character in text:
        sound += [0.0] * int(RATE * draw.uniform(0.10, 0.14)) if character == " " else letter(character, draw) + [0.0] * int(RATE * draw.uniform(0.02, 0.05))
    gain = draw.uniform(0.3, 0.9)
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(array.array("h", (int(32000 * max(-1, min(1, gain * x + draw.gauss(0, 0.01)))) for x in sound)).tobytes())


class Speech(CommandTest):
    def setUp(self):
        super().setUp()
        self.draw = random.Random(1)
        (self.folder / "small.json").write_text(json.dumps(SMALL))

    def pairs(self, count):
        """NAME.wav with NAME.txt. Returns the texts."""
        texts = {}
        for number in range(count):
            name = f"u{number:03}"
            texts[name] = " ".join(self.draw.choice(WORDS) for _ in range(self.draw.randint(1, 3)))
            speak(self.folder / f"d/{name}.wav", texts[name], self.draw)
            (self.folder / f"d/{name}.txt").write_text(texts[name].title() + "\n")
        return texts

    def facts(self, *arguments):
        return self.good("inspect", *arguments, "--json").lines()[0]

    def train(self, *more):
        return self.good("train", "speech", "--data", "d", "--config", "small.json", "--batch", "8", "--seed", "1", *more)

    def test_recogniser(self):
        """A training hears words; padding changes no loss and no transcript, nor does an interruption the weights."""
        texts = self.pairs(160)
        self.train("--epochs", "14", "--lr", "0.005", "--save", "m")
        eval_ = ("eval", "--weights", "m.safetensors", "--data", "d", "--json")
        whole, alone = (self.good(*eval_, "--batch", batch).lines()[0] for batch in ("32", "1"))
        self.assertEqual(whole["samples"], 32)
        self.assertLess(whole["scores"]["cer"], 0.05)
        self.assertLess(whole["scores"]["wer"], 0.15)
        self.assertAlmostEqual(whole["loss"], alone["loss"], delta=1e-5 + 1e-5 * whole["loss"])
        self.assertEqual(whole["scores"]["cer"], alone["scores"]["cer"])
        names = sorted(texts)
        heard = self.good("infer", "--weights", "m.safetensors", "--json", *(f"d/{name}.wav" for name in names), "--batch", "50").lines()
        self.assertEqual([line["sample"] for line in heard], [f"d/{name}.wav" for name in names])
        wrong = sum(line["text"] != texts[name] for name, line in zip(names, heard))
        self.assertLess(wrong, 12)
        first = self.good("infer", "--weights", "m.safetensors", f"d/{names[0]}.wav")
        self.assertEqual(first.output, f"d/{names[0]}.wav\t{heard[0]['text']}\n")
        (self.folder / "bad.wav").write_text("no recording")
        outcome = self.tutti("infer", "--weights", "m.safetensors", "bad.wav", f"d/{names[1]}.wav")
        self.assertEqual((outcome.status, outcome.output), (3, f"d/{names[1]}.wav\t{heard[1]['text']}\n"), outcome)

    def test_resumed(self):
        self.pairs(24)
        self.train("--epochs", "2", "--save", "a")
        self.train("--epochs", "1", "--save", "b")
        self.good("train", "speech", "--data", "d", "--config", "small.json", "--epochs", "2", "--batch", "8", "--seed", "1", "--resume", "b")
        self.assertEqual(self.pair("a"), self.pair("b"))

    def recordings(self, folder, names, text="ab"):
        for name in names:
            speak(self.folder / folder / f"{name}.wav", text, self.draw)

    def test_forms(self):
        """Tables as LJSpeech, Common Voice and Hugging Face have them; files next to recordings; LibriSpeech."""
        names = [f"r{number}" for number in range(5)]
        self.recordings("lj/wavs", names)
        (self.folder / "lj/metadata.csv").write_text("".join(f'{name}|A, "b, c|a, b, c\n' for name in names))
        self.recordings("voice/clips", names, "abcabc")
        rows = "".join(f'x\t{name}.wav\t"He said ""ab"""\t2\n' for name in names)
        (self.folder / "voice/train.tsv").write_text("client_id\tpath\tsentence\tup_votes\n" + rows)
        (self.folder / "voice/test.tsv").write_text("client_id\tpath\tsentence\tup_votes\n" + f"x\t{names[0]}.wav\tab\t2\n")
        self.recordings("hub", names)
        (self.folder / "hub/metadata.csv").write_text("file_name,transcription,other\n" + "".join(f'{name}.wav,"a, b",c\n' for name in names))
        self.recordings("json", names)
        (self.folder / "json/metadata.jsonl").write_text("".join(json.dumps({"audio": f"{name}.wav", "text": "ab"}) + "\n" for name in names))
        self.recordings("libri/train-clean-5/1/2", names)
        (self.folder / "libri/train-clean-5/1/2/1-2.trans.txt").write_text("".join(f"{name} A B\n" for name in names))
        self.recordings("libri/dev-clean/3/4", names[:2])
        (self.folder / "libri/dev-clean/3/4/3-4.trans.txt").write_text("".join(f"{name} A B\n" for name in names[:2]))
        self.recordings("lab", names)
        for name in names:
            (self.folder / f"lab/{name}.lab").write_text("a\nb\n")
        expected = {"lj": (4, 1, "a, b, c"), "voice": (5, 1, 'He said "ab"'), "hub": (4, 1, "a, b"), "hub/metadata.csv": (4, 1, "a, b"),
                    "json": (4, 1, "ab"), "libri": (5, 2, "A B"), "lab": (4, 1, "a b")}
        for path, (train, held, first) in expected.items():
            with self.subTest(path):
                facts = self.facts(path)
                parts = facts["parts"]
                self.assertEqual((facts["kind"], parts["train"], parts["val"] + parts["test"]), ("speech", train, held), facts)
                texts = {facts["transcripts"]["first"]}
                self.assertIn(first, texts)
                self.assertEqual(facts["next"], f"tutti train speech --data {path}")
                self.assertEqual(facts["models"], ["speech"])
        facts = self.facts("hub", "--text", "other")
        self.assertEqual(facts["transcripts"]["first"], "c")
        self.refused(1, ["--text", "nothing"], "inspect", "hub", "--text", "nothing")

    def test_left_out(self):
        """Empty transcripts and those longer than CTC allows are left out, and counted; other files only if that is asked for."""
        self.pairs(6)
        (self.folder / "d/u000.txt").write_text(" \n")
        (self.folder / "d/u001.txt").write_text("a" * 500)
        outcome = self.good("train", "speech", "--data", "d", "--config", "small.json", "--steps", "1", "--batch", "2")
        self.assertIn("left out: 1 recording without a transcript\n", outcome.errors)
        self.assertIn("left out: 1 recording whose transcript is longer than its steps: CTC has no path for it\n", outcome.errors)
        self.assertIn("3 training and 1 test samples", outcome.errors)
        (self.folder / "d/u002.wav").write_bytes((self.folder / "d/u002.wav").read_bytes()[:20])
        self.refused(1, ["u002.wav", "--skip-damaged"], "train", "speech", "--data", "d", "--steps", "1", "--batch", "2")
        outcome = self.good("train", "speech", "--data", "d", "--config", "small.json", "--steps", "1", "--batch", "2", "--skip-damaged")
        self.assertIn("2 training and 1 test samples", outcome.errors)
        (self.folder / "d/u003.txt").write_bytes(b"\xff\xfe")
        self.refused(1, ["u003", "UTF-8"], "inspect", "d")
        for number in range(6):
            (self.folder / f"d/u{number:03}.txt").write_text("")
        self.refused(1, "no recording with a transcript", "train", "speech", "--data", "d", "--skip-damaged")

    def test_wrong_use(self):
        self.pairs(4)
        self.refused(2, ["transcripts", "speech", "mlp"], "train", "mlp", "--data", "d")
        self.refused(2, ["speech", "digits"], "train", "speech", "--data", "digits")
        self.refused(2, "--label-smoothing", "train", "speech", "--data", "d", "--label-smoothing", "0.1")
        self.refused(1, "--target", "train", "speech", "--data", "d", "--target", "x")
        self.refused(1, "mixup", "train", "speech", "--data", "d", "--augment", "mixup=0.2")

    def test_tokens_and_augmentation(self):
        self.pairs(12)
        outcome = self.good("train", "speech", "--data", "d", "--config", "small.json", "--epochs", "1", "--batch", "4", "--save", "m",
                            "--tokenizer", "bpe", "--augment", "gain=6,noise=0.01,mask-time=0.1,mask-frequency=0.1")
        self.assertIn("test CER", outcome.errors)
        result = self.good("eval", "--weights", "m.safetensors", "--data", "d", "--json").lines()[0]
        self.assertGreater(result["scores"]["characters"], 0)


if __name__ == "__main__":
    main()
