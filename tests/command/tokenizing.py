"""tutti tokenize: tokens of lines, and tokenizers learned from a text."""
import json

import harness

TEXT = "low lower lowest\nnew newer newest\nlow newest wide\n" * 4


class Tokenize(harness.CommandTest):
    def test_bytes(self):
        self.assertEqual(self.good("tokenize", "bytes", given=b"Ab c\n").output, "A 65  b 98  \u0120 32  c 99\n")
        line, = self.good("tokenize", "bytes", "--json", given="é".encode()).lines()
        self.assertEqual(line, {"count": 2, "ids": [195, 169], "tokens": ["Ã", "©"]})

    def test_learn_and_use(self):
        (self.folder / "t.txt").write_text(TEXT)
        said = self.good("tokenize", "--train", "t.txt", "--size", "270", "--special", "<|endoftext|>", "--save", "t.json").output
        self.assertEqual(said, f"t.json: 270 tokens, learned from {len(TEXT)} bytes\n")
        model = json.loads((self.folder / "t.json").read_text())
        self.assertEqual(model["added_tokens"][0]["content"], "<|endoftext|>")
        self.assertEqual(model["model"]["merges"][0], ["w", "e"])
        line, = self.good("tokenize", "t.json", "--json", given=b"low newest<|endoftext|>").lines()
        self.assertLess(line["count"], 10)
        self.assertEqual("".join(line["tokens"]), "low\u0120newest<|endoftext|>")

    def test_characters(self):
        (self.folder / "t.txt").write_text(TEXT)
        self.good("tokenize", "--train", "t.txt", "--kind", "characters", "--save", "t.json")
        vocabulary = json.loads((self.folder / "t.json").read_text())["model"]["vocab"]
        self.assertEqual(sorted(set(TEXT)), list(vocabulary))

    def test_wordpiece(self):
        (self.folder / "t.txt").write_text(TEXT)
        self.good("tokenize", "--train", "t.txt", "--kind", "wordpiece", "--size", "60", "--lowercase", "--save", "t.json")
        line, = self.good("tokenize", "t.json", "--json", given=b"Low newest!").lines()
        self.assertEqual(line["tokens"][0], "low")
        self.assertEqual(line["tokens"][-1], "[UNK]")

    def test_refusals(self):
        (self.folder / "bad.json").write_text('{"model": {"type": "Magic"}}')
        self.refused(2, ["TOKENIZER", "--train"], "tokenize")
        self.refused(2, ["--save"], "tokenize", "--train", "t.txt")
        self.refused(1, ["bad.json", "\"Magic\""], "tokenize", "bad.json")
        self.refused(1, ["no.json"], "tokenize", "no.json")


harness.main()
