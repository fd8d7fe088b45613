#!/usr/bin/env python3
"""Compares ids and decoded texts with SentencePiece's encoder, on models that it trains on this project's documentation. By hand:

    python3 -m venv VENV && VENV/bin/pip install sentencepiece tokenizers
    VENV/bin/python tests/text/sentencepiece.py BUILD/libtutti.so [LINES]      LINES: 100000
    VENV/bin/python tests/text/sentencepiece.py --record                       writes tests/text/recorded/

Lines differ where two divisions have the same score (SentencePiece adds floats, tokenizers doubles), and where a mark combines with a
blank (transformers' form of a model replaces graphemes, SentencePiece characters).
"""
import json
import pathlib
import random
import sys
import tempfile

sys.path = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != pathlib.Path(__file__).resolve().parent]
import sentencepiece

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import differential

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
BYTES = {"byte_fallback": True, "character_coverage": 0.98, **PLAIN}
MODELS = {
    "unigram": {"model_type": "unigram"},
    "unigram_bytes": {"model_type": "unigram", **BYTES},
    "unigram_folded": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc_cf"},
    "bpe": {"model_type": "bpe"},
    "bpe_bytes": {"model_type": "bpe", "split_digits": True, "allow_whitespace_only_pieces": True, **BYTES},
    "bpe_own": {"model_type": "bpe", "add_dummy_prefix": False, "split_by_whitespace": False, "user_defined_symbols": ["<u>", "\n\n"], **BYTES},
}
STRANGE = ["", " ", "   ", " a", "a ", "  two  spaces   x ", "tab\there", "\u00a0nbsp", "a▁b ▁ c", "こんにちは世界 テスト", "Привет, мир! Ёлка", "café e\u0301tude ﬁne ①②",
           "😀 emoji 👩‍👩‍👧", "ｆｕｌｌ ｗｉｄｔｈ", "한국어 문장", "\u3000x\u3000y", "עברית 123", "x\u200by", "a <u> b<u>", "one\n\ntwo"]


def documentation():
    return [line for path in sorted(ROOT.glob("docs/**/*.md")) for line in path.read_text().split("\n") if line.strip()]


def lines(count):
    """Lines of the documentation, some with characters inserted or blanks around."""
    random.seed(1)
    pool, made = documentation() + STRANGE, list(STRANGE)
    while len(made) < count:
        line = list(random.choice(pool))
        for _ in range(random.choice((0, 0, 3, 6))):
            line.insert(random.randint(0, len(line)), random.choice("  \t▁éß漢字😀ﬁ½\u0301\u3000x.-"))
        made.append("".join(line))
    return made


def train(folder, name, size, **more):
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(documentation() + STRANGE * 3))
    sentencepiece.SentencePieceTrainer.train(input=str(corpus), model_prefix=str(folder / name), vocab_size=size, minloglevel=2, **MODELS[name], **more)
    return folder / f"{name}.model"


def compare(library, folder, name, count):
    path = train(folder, name, 3000)
    peer, ours = sentencepiece.SentencePieceProcessor(model_file=str(path)), differential.Ours(library, path=str(path))
    different = 0
    for line in lines(count):
        wanted = peer.encode(line)
        found = list(ours.encode(line.encode(), special=False)[0])
        decoded = peer.unk_id() in wanted or ours.decode(wanted, True).decode() == peer.decode(wanted)
        if wanted == found and decoded:
            continue
        different += 1
        if different <= 3:
            print(f"  {line!r}: {peer.id_to_piece(wanted)} and {peer.id_to_piece(found)}" if wanted != found else f"  decoded differently: {line!r}")
    print(f"{name}: {count} lines, {different} different", flush=True)


def record(folder):
    rules = folder / "rules.tsv"
    rules.write_text("FF21\t41\nFF22\t42\nFB01\t66 69\n")
    for name, more in (("unigram", {"normalization_rule_tsv": str(rules)}), ("bpe_bytes", {})):
        path = train(folder, name, 420, **more)
        peer, cases = sentencepiece.SentencePieceProcessor(model_file=str(path)), []
        for line in lines(60):
            ids = peer.encode(line)
            if peer.unk_id() not in ids:
                cases.append({"text": line.encode().hex(), "pair": None, "ids": ids, "types": [0] * len(ids), "decoded": peer.decode(ids)})
        (ROOT / f"tests/text/recorded/sentencepiece_{name}.json").write_text(json.dumps({"model": path.read_bytes().hex(), "cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    with tempfile.TemporaryDirectory() as name:
        if sys.argv[1] == "--record":
            return record(pathlib.Path(name))
        for model in MODELS:
            compare(differential.Library(sys.argv[1]), pathlib.Path(name), model, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)


main()
