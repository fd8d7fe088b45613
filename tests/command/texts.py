"""Texts as data: what they are, training, evaluation, prediction; language models."""
import json
import random
import struct

import harness

WEIGHTS = ("--weights", "m.safetensors")
COLUMNS = ("--text", "text", "--target", "label")
SIZES = {"vocab_size": 256, "max_position_embeddings": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
         "num_attention_heads": 2}
SMALL = ("--devices", "0", "--batch", "4", "--steps", "2", "--save", "m")


class Texts(harness.CommandTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        words = {"yes": ["good", "fine", "great"], "no": ["bad", "poor", "dull"]}
        rows = [(f"a {draw.choice(words[label])} film", label) for label in ("yes", "no") for _ in range(20)]
        (self.folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
        (self.folder / "new.csv").write_text("label,text\n?,a great film\n?,\n?,dull\n")

    def test_inspect(self):
        facts, = self.good("inspect", "reviews.tsv", *COLUMNS, "--json").lines()
        text = facts["text"]
        self.assertEqual((facts["kind"], facts["samples"], text["vocabulary"], text["cut"]), ("text", 40, 9, 0))  # all words, and [UNK]
        self.assertEqual((text["lengths"]["largest"], text["unknown"]), (3, 0))
        self.assertEqual(facts["models"][0], "lstm")
        shown = self.good("inspect", "reviews.tsv", *COLUMNS, "--length", "9", "--tokenizer", "bytes").output
        shown = " ".join(shown.split())
        self.assertIn("from a vocabulary of 256", shown)
        self.assertIn("samples have up to 9, and ", shown)
        self.assertIn("tutti train lstm --data reviews.tsv --text text --target label --tokenizer bytes --length 9", shown)

    def test_refusals(self):
        self.refused(1, "there is no column 'words'", "train", "lstm", "--data", "reviews.tsv", "--text", "words")
        self.refused(2, "needs texts", "train", "lstm", "--data", "reviews.tsv")
        self.refused(1, "--length is an option of texts, but these data are a table", "train", "mlp", "--data", "reviews.tsv", "--length", "5")
        self.refused(2, "these data are text", "train", "mlp", "--data", "reviews.tsv", *COLUMNS)
        self.refused(1, "tokenizer", "train", "lstm", "--data", "reviews.tsv", *COLUMNS, "--tokenizer", "none.json")

    def test_classes(self):
        """Weights say what their texts were."""
        self.good("train", "lstm", "--data", "reviews.tsv", *COLUMNS, *SMALL)
        result, = self.good("eval", *WEIGHTS, "--data", "reviews.tsv", "--part", "all", "--json").lines()
        self.assertEqual((result["samples"], len(result["scores"]["classes"])), (40, 2))
        outcome = self.tutti("infer", *WEIGHTS, "new.csv", "--json", "--devices", "0")
        self.assertEqual(outcome.status, 3, outcome)  # one text is empty
        self.assertIn("row 2 (line 3): column 'text': the text is empty", outcome.errors)
        first, last = outcome.lines()
        self.assertEqual((first["sample"], last["sample"]), ("row 1", "row 3"))
        one, = self.good("infer", *WEIGHTS, "--text-of", "a great film", "--json").lines()
        probabilities = [{row["name"]: row["probability"] for row in line["likeliest"]} for line in (first, one)]
        for name in ("yes", "no"):
            self.assertAlmostEqual(probabilities[0][name], probabilities[1][name], 5)
        self.refused(1, "--target text: the network was trained on label:class", "eval", *WEIGHTS, "--data", "reviews.tsv", "--target", "text")
        self.refused(1, "--target label:number", "eval", *WEIGHTS, "--data", "reviews.tsv", "--target", "label:number")
        self.good("eval", *WEIGHTS, "--data", "reviews.tsv", "--target", "label")
        self.refused(2, "--text-of is one text", "infer", *WEIGHTS, "new.csv", "--text-of", "x")
        self.good("train", "--resume", "m", "--data", "reviews.tsv", *COLUMNS, "--devices", "0", "--batch", "4", "--steps", "1")
        self.refused(1, "the network was trained on 'text'", "train", "--resume", "m", "--data", "reviews.tsv", "--text", "label", "--target", "text")

    def tagged(self):
        """Names are capitalised, and places follow "in"."""
        draw = random.Random(2)
        sentences = []
        for _ in range(60):
            words = [(draw.choice(["we", "so", "now"]), "O"), (draw.choice(["Anna", "Bo"]), "B-PER"), ("is", "O"), ("in", "O"), ("New", "B-LOC"), ("York", "I-LOC")]
            sentences.append(words[draw.randrange(2):draw.randrange(4, 7)])
        (self.folder / "ner.conll").write_text("\n".join("".join(f"{word} _ {tag}\n" for word, tag in words) for words in sentences))
        (self.folder / "ner.jsonl").write_text("".join(json.dumps({"tokens": [word for word, _ in words], "ner_tags": [tag for _, tag in words]}) + "\n"
                                                       for words in sentences))
        return sentences

    def test_tags(self):
        """A class for each word: train, evaluate, predict."""
        sentences = self.tagged()
        lists = ("--text", "tokens", "--target", "ner_tags")
        facts = [self.good("inspect", name, *options, "--json").lines()[0] for name, options in (("ner.conll", ()), ("ner.jsonl", lists))]
        for one in facts:
            self.assertEqual((one["samples"], len(one["classes"]), one["text"]["words"]), (60, 4, sum(map(len, sentences))))
            self.assertNotIn("fasttext", one["models"])
        self.refused(2, "fasttext gives no class for each word", "train", "fasttext", "--data", "ner.conll")
        self.refused(2, "--class-weights balanced", "train", "lstm", "--data", "ner.conll", "--class-weights", "balanced")
        trained = self.good("train", "gru", "--data", "ner.conll", "--devices", "0", "--batch", "32", "--steps", "1")
        self.assertNotIn("are not used", trained.errors) # kernels that failed their first check
        self.good("train", "bert_tiny", "--data", "ner.conll", "--devices", "0", "--batch", "8", "--epochs", "4", "--lr", "0.001", "--save", "m")
        result, = self.good("eval", *WEIGHTS, "--data", "ner.conll", "--part", "all", "--json", "--devices", "0").lines()
        scores = result["scores"]
        self.assertEqual((result["samples"], scores["labels"], len(scores["classes"])), (60, sum(map(len, sentences)), 4))
        self.assertGreater(scores["span_f1"], 0.9)
        self.assertAlmostEqual(result["loss"], scores["loss"])
        other, = self.good("eval", *WEIGHTS, "--data", "ner.jsonl", "--target", "ner_tags", "--part", "all", "--json", "--devices", "0").lines()
        self.assertEqual(other["scores"]["accuracy"], scores["accuracy"])
        text = self.good("infer", *WEIGHTS, "ner.conll", "--devices", "0").output
        self.assertEqual(text.count("\n\n"), 60)
        self.assertEqual([line.split("\t")[0] for line in text.split("\n\n")[0].split("\n")], [word for word, _ in sentences[0]])
        lines = self.good("infer", *WEIGHTS, "ner.conll", "--json", "--devices", "0").lines()
        self.assertEqual([line["tokens"] for line in lines], [[word for word, _ in words] for words in sentences])
        right = sum(a == b for line, words in zip(lines, sentences) for a, (_, b) in zip(line["tags"], words))
        self.assertAlmostEqual(right / scores["labels"], scores["accuracy"], 6)
        one, = self.good("infer", *WEIGHTS, "--text-of", "so Bo is in New York", "--json", "--devices", "0").lines()
        self.assertEqual(one["tokens"], "so Bo is in New York".split())
        self.refused(2, "--output is a table of samples", "infer", *WEIGHTS, "ner.conll", "--output", "o.csv")
        self.refused(1, "the network gives words tags", "eval", *WEIGHTS, "--data", "reviews.tsv")
        self.good("train", "--resume", "m", "--data", "ner.conll", "--devices", "0", "--batch", "8", "--epochs", "5", "--report", "r.html")

    def test_unused_columns(self):
        (self.folder / "more.csv").write_text("id,text,label,extra\n" + "".join(f"{i},film {i},{'ab'[i % 2]},x\n" for i in range(20)))
        facts = [self.good("inspect", name, *COLUMNS, "--json").lines()[0] for name in ("more.csv", "reviews.tsv")]
        self.assertEqual(facts[0]["notes"], ["left out: columns 'id', 'extra': only texts and the target are read"])
        self.assertEqual(facts[1].get("notes", []), [])

    def test_tokenizer_of_weights(self):
        """A training that begins with weights reads texts as these were trained."""
        (self.folder / "t.txt").write_text("a great film\na poor film\n" * 9)
        for name, kind in (("t.json", "characters"), ("other.json", "wordpiece")):
            self.good("tokenize", "--train", "t.txt", "--kind", kind, "--size", "40", "--save", name)
        small = ("train", "fasttext", "--data", "reviews.tsv", *COLUMNS, "--devices", "0", "--batch", "4", "--steps", "1")
        self.good(*small, "--tokenizer", "t.json", "--save", "m")
        (self.folder / "same.json").write_bytes((self.folder / "t.json").read_bytes())
        self.good(*small, *WEIGHTS, "--save", "next")
        tokenizer = [json.loads(self.metadata(name)["data"])["text"]["tokenizer"] for name in ("m", "next")]
        self.assertEqual(*tokenizer)
        self.good(*small, *WEIGHTS, "--tokenizer", "same.json")
        self.refused(1, "is not the one that m.safetensors was trained with", *small, *WEIGHTS, "--tokenizer", "other.json")
        self.refused(1, "is not the one", *small, *WEIGHTS, "--tokenizer", "bytes")
        self.refused(1, "--tokenizer words learns a new one", *small, *WEIGHTS, "--tokenizer", "words")
        raw = (self.folder / "m.safetensors").read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:8 + size])
        del header["__metadata__"]
        bare = json.dumps(header).encode().ljust(size)
        (self.folder / "bare.safetensors").write_bytes(raw[:8] + bare + raw[8 + size:])
        self.refused(1, "does not say which tokenizer", *small, "--weights", "bare.safetensors")
        self.good(*small, "--weights", "bare.safetensors", "--tokenizer", "t.json")

    def metadata(self, name):
        raw = (self.folder / f"{name}.safetensors").read_bytes()
        return json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]

    def test_pairs(self):
        (self.folder / "pairs.csv").write_text("a,b,label\n" + "".join(f"x{i % 3},y {i % 2},{'no' if i % 2 else 'yes'}\n" for i in range(40)))
        pairs = ("--data", "pairs.csv", "--text", "a,b", "--target", "label", "--devices", "0", "--batch", "8", "--seed", "3")
        warned = self.good("train", "fasttext", *pairs, "--steps", "1").errors
        self.assertIn("warning: fasttext is not told which of two texts", warned)
        (self.folder / "c.json").write_text(json.dumps({"model_type": "roberta", **SIZES, "type_vocab_size": 1}))
        self.assertIn("warning: roberta_base is not told", self.good("train", "roberta_base", "--config", "c.json", *pairs, "--steps", "1").errors)
        (self.folder / "c.json").write_text(json.dumps({"model_type": "bert", **SIZES, "type_vocab_size": 2}))
        told = self.good("train", "bert_tiny", "--config", "c.json", *pairs, "--steps", "1", "--save", "m").errors
        self.assertNotIn("warning", told)
        (self.folder / "two.csv").write_text("b,a\nb,a\n,ab\nab,\n")  # the same bytes, of other texts
        lines = self.good("infer", *WEIGHTS, "two.csv", "--json").lines()
        scores = [line["likeliest"][0]["probability"] for line in lines]
        self.assertEqual(len(set(scores)), 3, scores)

    def test_columns(self):
        (self.folder / "twice.csv").write_text("text,text,label\ngood,x,a\nbad,y,b\n" * 4)
        self.refused(1, "columns 1 and 2 are both called 'text'", "inspect", "twice.csv", *COLUMNS)
        self.refused(1, "column 1 is named twice", "inspect", "reviews.tsv", "--text", "text", "--target", "text")
        self.refused(1, "column 1 is named twice", "inspect", "reviews.tsv", "--text", "text,text", "--target", "label")

    def test_parts(self):
        for name in ("train.tsv", "dev.tsv"):
            (self.folder / name).write_bytes((self.folder / "reviews.tsv").read_bytes())
        parts = self.good("inspect", ".", *COLUMNS, "--json").lines()[0]
        self.assertEqual(parts["samples"], 80)
        (self.folder / "val.csv").write_text("text,label\na,yes\n")
        self.refused(1, ["val.csv", "dev.tsv are both tables of one part"], "inspect", ".", *COLUMNS)

    def test_options_of_tables(self):
        for option in ("id", "drop", "only"):
            self.refused(1, f"--{option} is an option of tables", "train", "fasttext", "--data", "reviews.tsv", *COLUMNS, f"--{option}", "label")
        (self.folder / "book.txt").write_text("a line of a book\n" * 60)
        self.refused(1, "--oversample needs classes", "train", "lstm", "--data", "book.txt", "--length", "16", "--oversample")

    def test_texts_without_tokens(self):
        """They are named where samples are predicted, and the status says so."""
        self.good("tokenize", "--train", "reviews.tsv", "--kind", "characters", "--save", "c.json")
        self.good("train", "fasttext", "--data", "reviews.tsv", *COLUMNS, *SMALL, "--tokenizer", "c.json")
        for name, text in (("more.csv", "text\na good film\nZZ##\nbad film\n"), ("a.txt", "film"), ("b.txt", "ZZ##"), ("c.txt", " \n")):
            (self.folder / name).write_text(text)
        outcome = self.tutti("infer", *WEIGHTS, "more.csv", "--json")
        self.assertEqual((outcome.status, len(outcome.lines())), (3, 2), outcome)
        self.assertIn("left out: 1 text without a token: row 2\n", outcome.errors)
        outcome = self.tutti("infer", *WEIGHTS, "a.txt", "b.txt", "c.txt", "--json")
        self.assertEqual((outcome.status, len(outcome.lines())), (3, 1), outcome)
        self.assertIn("left out: 2 texts without a token: c.txt, b.txt\n", outcome.errors)

    def test_tokens(self):
        """The loss of a language model in nats, and its perplexity."""
        (self.folder / "book.txt").write_text("".join(f"line {number} of a book\n" for number in range(60)))
        self.assertEqual(self.good("inspect", "book.txt", "--length", "16", "--json").lines()[0]["models"], ["gpt", "lstm", "gru", "gpt2", "llama"])
        self.good("train", "lstm", "--data", "book.txt", "--length", "16", *SMALL)
        result, = self.good("eval", *WEIGHTS, "--data", "book.txt", "--json").lines()
        self.assertAlmostEqual(result["perplexity"] / 2.718281828459045 ** result["loss"], 1, 4)
        self.assertGreater(result["perplexity"], 1)
        self.assertNotIn("scores", result)
        self.refused(2, "tutti generate", "infer", *WEIGHTS, "--data", "book.txt")
        self.assertIn("perplexity", self.good("eval", *WEIGHTS, "--data", "book.txt").output)


harness.main()
