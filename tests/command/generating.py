"""tutti generate: texts that a language model continues."""
import json
import struct

import harness

CONFIG = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 32, "vocab_size": 256}
ONE = ("--devices", "0")


class Generate(harness.CommandTest):
    def setUp(self):
        super().setUp()
        (self.folder / "book.txt").write_text("a rose is a rose is a rose, and a nose is no rose\n" * 40)
        (self.folder / "gpt.json").write_text(json.dumps(CONFIG))
        self.good("train", "gpt", "--config", "gpt.json", "--data", "book.txt", "--length", "24", "--batch", "8", "--steps", "30",
                  "--lr", "0.01", "--save", "m", *ONE)

    def text(self, *arguments):
        line, = self.good("generate", "--weights", "m", "--json", *ONE, *arguments).lines()
        return line

    def test_texts(self):
        line = self.text("--prompt", "a rose", "--tokens", "12")
        self.assertEqual((line["model"], line["prompt_tokens"], line["tokens"]), ("gpt", 6, 12))
        self.assertTrue(line["text"].startswith("a rose"))
        self.assertEqual(self.text("--prompt", "a rose", "--tokens", "12")["text"], line["text"])
        self.assertNotEqual(self.text("--prompt", "a rose", "--tokens", "12", "--seed", "1", "--temperature", "5")["text"], line["text"])
        likeliest = self.text("--prompt", "a rose", "--tokens", "12", "--temperature", "0")["text"]
        self.assertEqual(self.text("--prompt", "a rose", "--tokens", "12", "--top-k", "1")["text"], likeliest)
        for storage in ("bf16", "int8"):
            stored = self.text("--prompt", "a rose", "--tokens", "12", "--temperature", "0", "--store", storage)
            self.assertEqual((stored["tokens"], stored["text"][:6]), (12, "a rose"))
        shown = self.good("generate", "gpt", "--weights", "m.safetensors", "--prompt", "a rose", "--tokens", "12", *ONE)
        self.assertEqual(shown.output, line["text"] + "\n")
        self.assertIn("12 tokens in ", shown.errors)

    def test_lengths(self):
        self.assertEqual(self.text()["tokens"], 23) # with the end of a line before it: 24, as in the training
        long = self.good("generate", "--weights", "m", "--tokens", "31", *ONE)
        self.assertIn("was trained on texts of 24 tokens, and this one may get 32", long.errors)
        self.refused(2, "has positions for 32 tokens, but texts would have up to 33: ask for fewer --tokens", "generate", "--weights", "m",
                     "--tokens", "32")

    def test_weights_of_others(self):
        raw = (self.folder / "m.safetensors").read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:8 + size])
        del header["__metadata__"]
        folder = self.folder / "published"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(raw[:8] + json.dumps(header).encode().ljust(size) + raw[8 + size:])
        (folder / "config.json").write_text(json.dumps(CONFIG))
        known = self.text("--prompt", "a rose", "--tokens", "12")["text"]
        line, = self.good("generate", "gpt", "--weights", "published", "--tokenizer", "bytes", "--prompt", "a rose", "--tokens", "12",
                          "--json", *ONE).lines()
        self.assertEqual(line["text"], known)
        self.refused(1, "does not say which tokenizer", "generate", "gpt", "--weights", "published")
        header["other.weight"] = header.pop("transformer.wpe.weight")
        (folder / "model.safetensors").write_bytes(raw[:8] + json.dumps(header).encode().ljust(size) + raw[8 + size:])
        self.refused(1, "has no values of 1 parameters, such as transformer.wpe.weight", "generate", "gpt", "--weights", "published",
                     "--tokenizer", "bytes", *ONE)

    def test_refusals(self):
        (self.folder / "r.tsv").write_text("text\tlabel\n" + "good\tyes\nbad\tno\n" * 20)
        self.good("train", "lstm", "--data", "r.tsv", "--text", "text", "--target", "label", "--steps", "1", "--save", "c", *ONE)
        self.refused(2, "does not predict next tokens", "generate", "--weights", "c")
        self.refused(2, "does not predict next tokens", "generate", "lenet", "--weights", "published.safetensors")
        self.refused(2, "MODEL is missing", "generate")
        self.refused(2, "--weights is missing", "generate", "gpt")
        self.refused(1, "none.safetensors", "generate", "--weights", "none.safetensors")
        self.refused(1, "has the weights of gpt, not of lstm", "generate", "lstm", "--weights", "m")


harness.main()
