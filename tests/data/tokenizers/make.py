#!/usr/bin/env python3
"""Makes the folders beside it: `make.py TEXT MINILM`.

TEXT is an English text to learn from (a few KB), MINILM the folder of all-MiniLM-L6-v2 with its vocab.txt. Needs the PyPI packages
tokenizers and sentencepiece, which nothing else does: what they answer is written down here as expected.json.
"""
import io
import json
import pathlib
import random
import sys
import unicodedata

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
TEXT, MINILM = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
LINES = TEXT.read_text(encoding="utf-8").splitlines()
GPT2_LIKE = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

WRITTEN = ["", " ", "  ", "\n", "In the beginning God created the heaven and the earth.", "don't e-mail me @ 3.14159%",
           "naïve café — Zürich, 東京 and Ελλάδα!", "ΟΔΥΣΣΕΥΣ ΣΑΣ İstanbul straße ẞ ﬁn", "I'LL we'Ve 'S 'ſ can't",
           "tabs\tand\u000bnew\nlines\r\n\r\n  end  ", "a\u00a0b\u2003c\u3000d\u0085e\u2028f\u200bg", "x" * 101 + " " + "y" * 100,
           "👩‍👩‍👧‍👦 🇨🇭 ☺️ 👍🏽", "e\u0301 e\u0300\u0323 \u1100\u1161\u11a8 각", "नमस्ते दुनिया สวัสดีชาวโลก", "שָׁלוֹם עולם مَرْحَبًا",
           "\u0000a\ufffdb\u0007c\u00add", "12345678901 ½ Ⅷ ٣٤٥ 一二三", "▁under▁score ▁ _ __", "ĠG Ċ Ã © raw", "\U00010000\U0010fffd\ue000",
           "<s> x </s> y <unk> z <pad>", "a <|endoftext|> b<|endoftext|>c", "[CLS] a [MASK] b[SEP]c [mask] [UNK]",
           "the  earth   was    without\n\n\nform", "HELLO World's THE-END?! (a) [b] {c} $5 ~x^2 `q`", "<0x41> <extra_id_0> <mask>",
           "ABCabc" * 30, "日本語テキストと한국어 텍스트", "Ǆ ǆ Ａｂｃ ① ﷺ"]


def characters():
    """Assigned in Unicode 8 already, so that every table knows them."""
    old = unicodedata.ucd_3_2_0
    return [chr(c) for c in range(0x110000) if old.category(chr(c)) not in ("Cn", "Cs")]


def random_texts(count, seed):
    rng = random.Random(seed)
    every = characters()
    ascii_ = [chr(c) for c in range(32, 127)]
    marks = [c for c in every if unicodedata.category(c) == "Mn"]
    spaces = [c for c in every if c.isspace()] + ["\u200d", "\u200b", "\ufe0f"]
    words = " ".join(LINES).split()
    texts = []
    for _ in range(count):
        pool = rng.choice([[every], [ascii_], [ascii_, marks], [words, spaces], [words, [" "], ascii_], [every, spaces, ascii_]])
        texts.append("".join(rng.choice(rng.choice(pool)) for _ in range(rng.randint(1, 12))))
    return texts


TEXTS = WRITTEN + random_texts(60, 1)


def write(folder, name, data):
    (HERE / folder).mkdir(exist_ok=True)
    (HERE / folder / name).write_text(data, encoding="utf-8")


def lines_of(cases):
    return "[\n" + ",\n".join(json.dumps(c, ensure_ascii=True) for c in cases) + "\n]\n"


def save(folder, tokenizer, name="tokenizer.json"):
    """The tokenizer, and what it answers."""
    write(folder, name, json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
    cases = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids), "with_special": tokenizer.decode(ids, False)})
    write(folder, "expected.json", lines_of(cases))


def word_piece():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(LINES + ["naïve café Zürich 東京 日本 Ελλάδα"] * 2,
                          trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    save("word_piece", t)
    vocabulary = sorted(t.get_vocab().items(), key=lambda item: item[1])
    write("word_piece", "vocab.txt", "".join(token + "\n" for token, _ in vocabulary))


def byte_level(folder, vocab_size=500, special=("<|endoftext|>",)):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(special), show_progress=False,
                                                     initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    return t


def gpt2():
    t = byte_level("gpt2")
    model = json.loads(t.to_str())["model"]
    write("gpt2", "vocab.json", json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":")) + "\n")
    write("gpt2", "merges.txt", "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]))
    save("gpt2", t)


def roberta():
    t = byte_level("roberta", 420, ("<s>", "<pad>", "</s>", "<unk>"))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
    save("roberta", t)


def llama3():
    t = byte_level("llama3")
    t.add_special_tokens(["<|begin_of_text|>"])
    t.add_tokens([AddedToken("heaven", single_word=True, rstrip=True, normalized=True)])
    data = json.loads(t.to_str())
    data["model"]["ignore_merges"] = True
    t = Tokenizer.from_str(json.dumps(data))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT2_LIKE), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    start = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", start)])])
    save("llama3", t)


def llama2():
    """BPE on characters with ▁ for spaces and bytes for what is unknown."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    t.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False))
    t.pre_tokenizer = None
    data = json.loads(t.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = data["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(data))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    save("llama2", t)


def clip():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=450, special_tokens=["<unk>"], show_progress=False,
                                                     end_of_word_suffix="</w>"))
    t.decoder = decoders.BPEDecoder("</w>")
    save("clip", t)


def metaspace(folder, scheme, normalizer):
    """Metaspace, NFKC, StripAccents, digits, punctuation: what other files use."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation(),
                                               pre_tokenizers.Metaspace(prepend_scheme=scheme)])
    t.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False))
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    save(folder, t)


def whitespace():
    t = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=20))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False))
    save("whitespace", t)


def sentence_piece(folder, name, kind, vocab_size, before, after, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=model, hard_vocab_limit=False, vocab_size=vocab_size, model_type=kind,
                                             normalization_rule_name="identity", minloglevel=2, **options)
    (HERE / folder).mkdir(exist_ok=True)
    (HERE / folder / name).write_bytes(model.getvalue())
    p = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    cases = []
    for text in TEXTS:
        if "<" not in text:  # special tokens in texts are not the library's
            ids = p.encode(text)
            cases.append({"text": text, "ids": before + ids + after, "decoded": p.decode([i for i in ids if i != p.unk_id()])})
    write(folder, "expected.json", lines_of(cases))


def minilm():
    """The tokens that its sentences need, with their ids."""
    sentences = json.loads((HERE / "minilm" / "sentences.json").read_text(encoding="utf-8"))
    vocabulary = (MINILM / "vocab.txt").read_text(encoding="utf-8").split("\n")
    needed = {i for ids in sentences["token_ids"] for i in ids} | {vocabulary.index(t) for t in ("[PAD]", "[UNK]", "[MASK]")}
    needed |= {i for i, token in enumerate(vocabulary) if len(token.removeprefix("##")) == 1 and token.isascii()}
    write("minilm", "tokens.txt", "".join(f"{i} {vocabulary[i]}\n" for i in sorted(needed)))


word_piece()
gpt2()
roberta()
llama3()
llama2()
clip()
metaspace("metaspace", "always", normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip(),
                                                       normalizers.NFKC()]))
metaspace("metaspace_first", "first", normalizers.NFC())
whitespace()
sentence_piece("t5", "spiece.model", "unigram", 300, [], [1], pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
sentence_piece("llama", "tokenizer.model", "bpe", 420, [1], [], byte_fallback=True, unk_id=0, bos_id=1, eos_id=2)
minilm()
