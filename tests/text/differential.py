#!/usr/bin/env python3
"""Compares ids and decoded texts with Hugging Face's tokenizers, on tokenizers that it trains and lines that it makes. By hand:

    python3 -m venv VENV && VENV/bin/pip install tokenizers
    VENV/bin/python tests/text/differential.py BUILD/libtutti.so [LINES] [NAME...]      LINES: 100000
    VENV/bin/python tests/text/differential.py BUILD/libtutti.so --speed                MB/s of one core, in turns
    VENV/bin/python tests/text/differential.py --record                                 writes tests/text/recorded/
"""
import ctypes
import json
import os
import pathlib
import random
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SIZE = 3000    # of vocabularies
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


# ------------------------------------------------------------------------------------------------------ the library ----

class Encoding(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int64), ("ids", ctypes.POINTER(ctypes.c_int32)), ("types", ctypes.POINTER(ctypes.c_int32))]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("pair", ctypes.c_char_p), ("pair_bytes", ctypes.c_int64), ("no_special", ctypes.c_bool),
                ("most", ctypes.c_int64)]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.tutti_tokenizer_parse.restype = self.c.tutti_tokenizer_open.restype = self.c.tutti_tokenizer_decode.restype = ctypes.c_void_p
        self.c.tutti_tokenizer_json.restype = ctypes.c_void_p
        self.c.tutti_tokenizer_parse.argtypes = self.c.tutti_tokenizer_open.argtypes = [ctypes.c_char_p]
        self.c.tutti_tokenizer_encode.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        self.c.tutti_tokenizer_decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool]
        self.message = getattr(self.c, "tutti_message", None) or self.c.status_message
        self.message.restype = ctypes.c_char_p

    def failure(self):
        return (self.message(None) or b"").decode()


class Ours:
    def __init__(self, library, text=None, path=None):
        self.library, self.c = library, library.c
        self.handle = self.c.tutti_tokenizer_open(path.encode()) if path else self.c.tutti_tokenizer_parse(text.encode())
        if not self.handle:
            raise SystemExit("refused: " + library.failure())

    def encode(self, raw, pair=None, special=True, most=0):
        encoding, options = Encoding(), Options(ctypes.sizeof(Options), pair, len(pair or b""), not special, most)
        if self.c.tutti_tokenizer_encode(self.handle, raw, len(raw), ctypes.byref(options), ctypes.byref(encoding)):
            raise SystemExit("refused: " + self.library.failure())
        result = encoding.ids[:encoding.count], encoding.types[:encoding.count]
        self.c.tutti_encoding_free(ctypes.byref(encoding))
        return result

    def decode(self, ids, special):
        array = (ctypes.c_int32 * len(ids))(*ids)
        pointer = self.c.tutti_tokenizer_decode(self.handle, array, len(ids), special)
        text = ctypes.string_at(pointer)
        ctypes.CDLL(None).free(ctypes.c_void_p(pointer))
        return text


# ------------------------------------------------------------------------------------------------------- tokenizers ----

def corpus(scripts=True):
    """Texts of this project, and lines of all scripts."""
    texts = [path.read_text(errors="replace") for folder in ("docs", "include", "tools", "text") for path in sorted((ROOT / folder).glob("*.*"))
             if path.suffix in (".md", ".h", ".c", ".py")]
    make = Lines(1)
    return [line for text in texts for line in text.splitlines(True)] + [make.line().replace("\0", "") for _ in range(4000 if scripts else 0)]


def trained(model, trainer, normalizer=None, pre_tokenizer=None, post=None, decoder=None, added=(), scripts=True):
    tokenizer = Tokenizer(model)
    for name, part in (("normalizer", normalizer), ("pre_tokenizer", pre_tokenizer), ("decoder", decoder)):
        if part is not None:
            setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(corpus(scripts), trainer)
    if added:
        tokenizer.add_tokens(list(added))
    if post:
        tokenizer.post_processor = post(tokenizer)
    return tokenizer


def byte_level(size, **arguments):
    return trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **arguments)


def gpt2():
    return trained(models.BPE(), byte_level(SIZE, special_tokens=["<|endoftext|>"]),
                   pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel(),
                   post=lambda _: processors.ByteLevel(trim_offsets=False))


def roberta():
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    return trained(models.BPE(), byte_level(SIZE, special_tokens=special), pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True),
                   decoder=decoders.ByteLevel(), post=lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))


def split_by(pattern, behavior="isolated", **arguments):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, **arguments),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def llama3():
    tokenizer = trained(models.BPE(ignore_merges=True), byte_level(SIZE), pre_tokenizer=split_by(LLAMA3), decoder=decoders.ByteLevel())
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[("<|begin_of_text|>", begin)])])
    return tokenizer


def qwen2():
    return trained(models.BPE(), byte_level(SIZE), normalizer=normalizers.NFC(), pre_tokenizer=split_by(QWEN2), decoder=decoders.ByteLevel(),
                   added=[AddedToken("<|im_end|>", special=True), AddedToken(" def", normalized=True), AddedToken("emoji", single_word=True),
                          AddedToken("the", rstrip=True, lstrip=True)])


def gpt4o():
    return trained(models.BPE(), byte_level(SIZE), pre_tokenizer=split_by(GPT4O), decoder=decoders.ByteLevel())


def llama2():
    """As sentencepiece's BPE is converted: spaces become marks, unknown characters bytes."""
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer = trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
                        trainers.BpeTrainer(vocab_size=SIZE, show_progress=False, special_tokens=special, limit_alphabet=min(300, SIZE // 3)),
                        pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoder)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, None
    text = json.loads(tokenizer.to_str())
    text["pre_tokenizer"] = None
    text["added_tokens"] = [token for token in text["added_tokens"] if token["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(text))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tokenizer


def mistral():
    """Metaspace before the first piece only."""
    special = ["<unk>", "<s>", "</s>", "[INST]"]
    return trained(models.BPE(unk_token="<unk>", fuse_unk=False), trainers.BpeTrainer(vocab_size=SIZE, show_progress=False, special_tokens=special, limit_alphabet=min(200, SIZE // 3)),
                   pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoder=decoders.Metaspace(prepend_scheme="first"))


def clip():
    """Suffixes of words, as OpenAI's CLIP."""
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    return trained(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"),
                   trainers.BpeTrainer(vocab_size=SIZE, show_progress=False, end_of_word_suffix="</w>", special_tokens=["<|startoftext|>", "<|endoftext|>"],
                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                   normalizer=normalizer, pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "removed", invert=True),
                                                                                pre_tokenizers.ByteLevel(add_prefix_space=False)]),
                   decoder=decoders.ByteLevel(), post=lambda t: processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), False, False))


def wordpiece(cased):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return trained(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=SIZE, show_progress=False, special_tokens=special, limit_alphabet=min(600, SIZE // 3)),
                   normalizer=normalizers.BertNormalizer(lowercase=not cased), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
                   decoder=decoders.WordPiece(), post=lambda t: processors.TemplateProcessing(
                       single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]))


def bert():
    return wordpiece(False)


def bert_cased():
    tokenizer = wordpiece(True)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def unigram():
    normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    return trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=SIZE, show_progress=False, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>"),
                   normalizer=normalizer, pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace(), scripts=False)


def unigram_bytes():
    """With byte fallback, as Gemma's."""
    text = json.loads(unigram().to_str())
    known = {token for token, _ in text["model"]["vocab"]}
    text["model"]["vocab"] += [[f"<0x{byte:02X}>", -20.0] for byte in range(256) if f"<0x{byte:02X}>" not in known]
    text["model"]["byte_fallback"] = True
    text["decoder"] = json.loads(decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(), decoders.Fuse()]).__getstate__())
    return Tokenizer.from_str(json.dumps(text))


def words():
    normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip(), normalizers.Lowercase()])
    return trained(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=SIZE, show_progress=False, special_tokens=["<unk>"]),
                   normalizer=normalizer, pre_tokenizer=pre_tokenizers.Whitespace())


def pieces(*steps, normalizer=None):
    """How a text is divided: each character is a token, and a piece ends in another one."""
    return trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
                   trainers.BpeTrainer(vocab_size=SIZE, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>"),
                   normalizer=normalizer, pre_tokenizer=pre_tokenizers.Sequence(list(steps)), decoder=decoders.BPEDecoder())


def punctuation():
    return pieces(pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"), normalizer=normalizers.NFKD())


def digits():
    return pieces(pre_tokenizers.Digits(True), pre_tokenizers.Punctuation("merged_with_previous"))


def numbers():
    return pieces(pre_tokenizers.Whitespace(), pre_tokenizers.Digits(False), pre_tokenizers.Punctuation("merged_with_next"))


def lengths():
    return pieces(pre_tokenizers.CharDelimiterSplit(" "), pre_tokenizers.FixedLength(3))


TOKENIZERS = {make.__name__: make for make in (gpt2, roberta, llama3, qwen2, gpt4o, llama2, mistral, clip, bert, bert_cased, unigram, unigram_bytes,
                                                  words, punctuation, digits, numbers, lengths)}


# ------------------------------------------------------------------------------------------------------------ lines ----

class Lines:
    """Lines of words of many scripts, emoji, marks, control characters, spaces and what code contains; some are no UTF-8."""
    SCRIPTS = [(0x61, 0x7A), (0x41, 0x5A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x587), (0x5D0, 0x5EA), (0x620, 0x6FF),
               (0x900, 0x97F), (0xE01, 0xE3A), (0x1100, 0x11FF), (0x3041, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1E00, 0x1FFF),
               (0x10400, 0x1044F), (0x20000, 0x20100), (0xFF01, 0xFF5E), (0x2150, 0x218B), (0x1D400, 0x1D7FF), (0xFB00, 0xFB06), (0x3300, 0x33FF)]
    MARKS = [(0x300, 0x36F), (0x591, 0x5BD), (0x64B, 0x65F), (0x20D0, 0x20F0), (0x93A, 0x94F)]
    EMOJI = ["🙂", "👩‍👩‍👧", "👍🏽", "🇩🇪", "❤️", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
    SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2009", "\u200b", "\u0085", "\u2028", "\u180e", "\ufeff"]
    OTHER = ["'s", "'LL", "don't", "I'VE", "<|endoftext|>", "<s>", "</s>", "<mask>", " <mask> ", "[MASK]", "[INST]", "<|im_end|>", "emoji", "the", " def",
             "__init__", "x==y", "3.14", "1234567", "½", "Ⅷ", "...", "—", "«»", "$", "€", "▁", "İ", "ẞ", "ǅ", "ſ", "ﬁ", "\u0000", "\u0007",
             "\u009f", "\u200d", "\ufffd", "\ue000", "<0x41>", "http://a.b/c?d=e", "naïve", "Åström"]
    BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x99", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\x80"]

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = [word for path in sorted((ROOT / "docs").glob("*.md")) for word in path.read_text().split(" ")]

    def character(self, ranges):
        low, high = self.random.choice(ranges)
        return chr(self.random.randint(low, high))

    def word(self):
        kind = self.random.random()
        if kind < 0.5:
            return self.random.choice(self.words)
        if kind < 0.75:
            low, high = self.random.choice(self.SCRIPTS)
            letters = [chr(self.random.randint(low, high)) for _ in range(self.random.randint(1, 9))]
            if self.random.random() < 0.3:
                letters.insert(self.random.randint(0, len(letters)), self.character(self.MARKS))
            return "".join(letters)
        if kind < 0.83:
            return self.random.choice(self.EMOJI)
        if kind < 0.97:
            return self.random.choice(self.OTHER)
        if kind < 0.98:
            return self.random.choice(["a", " ", "ab", "-", "é", "\n"]) * self.random.randint(20, 300)
        return "".join(chr(self.random.choice([*range(0xD800), *range(0xE000, 0xFFFF)])) for _ in range(self.random.randint(1, 4)))

    def line(self):
        return "".join(self.word() + (self.random.choice(self.SPACES) if self.random.random() < 0.8 else "") for _ in range(self.random.randint(0, 14)))

    def raw(self):
        raw = self.line().encode()
        while self.random.random() < 0.1:
            at = self.random.randint(0, len(raw))
            raw = raw[:at] + self.random.choice(self.BROKEN) + raw[at:]
        return raw


def compare(name, ours, peer, count, seed=7):
    make, faults, done = Lines(seed), 0, 0
    while done < count:
        batch = [make.raw() for _ in range(min(1000, count - done))]
        texts = [raw.decode(errors="replace") for raw in batch]
        for raw, text, expected in zip(batch, texts, peer.encode_batch(texts)):
            ids, types = ours.encode(raw)
            back = peer.decode(expected.ids, skip_special_tokens=True)
            if ids != expected.ids or types != expected.type_ids:
                where = next((i for i, (a, b) in enumerate(zip(ids, expected.ids)) if a != b), min(len(ids), len(expected.ids)))
                print(f"{name}: {text!r}\n  ours {[peer.id_to_token(i) for i in ids[max(0, where - 3):where + 5]]}\n"
                      f"  peer {[peer.id_to_token(i) for i in expected.ids[max(0, where - 3):where + 5]]}")
                faults += 1
            elif ours.decode(ids, False) != back.encode().split(b"\0")[0]:
                print(f"{name}: decoded\n  ours {ours.decode(ids, False)!r}\n  peer {back.encode()!r}")
                faults += 1
            if faults >= 5:
                return faults
        if peer.post_processor is None or "Metaspace" not in str(peer.post_processor):
            for raw, other in zip(batch[:20], batch[20:40]):
                most = make.random.randint(4, 60)
                peer.enable_truncation(most)
                expected = peer.encode(raw.decode(errors="replace"), other.decode(errors="replace"))
                peer.no_truncation()
                if ours.encode(raw, other, most=most) != (expected.ids, expected.type_ids):
                    print(f"{name}: a pair differs, at most {most}: {raw!r} {other!r}")
                    faults += 1
        done += len(batch)
    return faults


def every_character(name, ours, peer):
    """All characters alone and between letters: those whose classes differ between versions of Unicode."""
    faults = []
    for code in [*range(1, 0xD800), *range(0xE000, 0x110000)]:
        text = f"a{chr(code)}b {chr(code)} 1{chr(code)}"
        if ours.encode(text.encode())[0] != peer.encode(text).ids:
            faults.append(code)
    print(f"{name}: {len(faults)} characters differ: {ranges(faults)}")


def ranges(codes):
    text, start = [], None
    for i, code in enumerate(codes):
        start = code if start is None else start
        if i + 1 == len(codes) or codes[i + 1] != code + 1:
            text.append(f"{start:X}-{code:X}" if code != start else f"{code:X}")
            start = None
    return " ".join(text)


def speed(library, names):
    lines = [line for _ in range(6) for line in corpus()]
    size = sum(len(line.encode()) for line in lines)
    for name in names:
        peer = TOKENIZERS[name]()
        ours, times = Ours(library, peer.to_str()), {"ours": [], "peer": []}
        raws, encoding = [line.encode() for line in lines], Encoding()
        for _ in range(5):
            start = time.perf_counter()
            for raw in raws:
                ours.c.tutti_tokenizer_encode(ours.handle, raw, len(raw), None, ctypes.byref(encoding))
                ours.c.tutti_encoding_free(ctypes.byref(encoding))
            middle = time.perf_counter()
            peer.encode_batch_fast(lines)
            times["ours"].append(middle - start)
            times["peer"].append(time.perf_counter() - middle)
        ours_best, peer_best = min(times["ours"]), min(times["peer"])
        print(f"{name:14} ours {size / ours_best / 1e6:6.1f} MB/s (with ctypes' calls)   peer {size / peer_best / 1e6:6.1f} MB/s   {peer_best / ours_best:.2f} x")


def record():
    """Small tokenizers with 40 lines each, which tests/text/test_recorded.c replays."""
    global SIZE
    SIZE = 420
    folder = ROOT / "tests/text/recorded"
    folder.mkdir(exist_ok=True)
    for name in ("roberta", "llama3", "qwen2", "llama2", "clip", "bert", "bert_cased", "unigram", "words"):
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        peer, make, cases = TOKENIZERS[name](), Lines(5), []
        for _ in range(40):
            raw, pair = make.raw()[:160], make.raw()[:60] if make.random.random() < 0.2 else None
            encoding = peer.encode(raw.decode(errors="replace"), pair.decode(errors="replace") if pair is not None else None)
            text = peer.decode(encoding.ids, skip_special_tokens=True).split("\0")[0]
            cases.append({"text": raw.hex(), "pair": pair.hex() if pair is not None else None, "ids": encoding.ids, "types": encoding.type_ids, "decoded": text})
        (folder / f"{name}.json").write_text(json.dumps({"tokenizer": json.loads(peer.to_str()), "cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--record"]:
        return record()
    library, options = Library(arguments[0]), arguments[1:]
    count = int(options.pop(0)) if options and options[0].isdigit() else 100_000
    flags, names = [option for option in options if option.startswith("--")], [option for option in options if not option.startswith("--")]
    names = names or list(TOKENIZERS)
    if "--speed" in flags:
        return speed(library, names)
    failed = 0
    for name in names:
        peer = TOKENIZERS[name]()
        ours = Ours(library, peer.to_str())
        if "--characters" in flags:
            every_character(name, ours, peer)
            continue
        faults = compare(name, ours, peer, count)
        failed += faults
        print(f"{name}: {count} lines, {'equal' if not faults else 'DIFFER'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
