from dataclasses import replace

import pytest
import torch

from imm.language import Texts, Vocabulary, encode, fit_ngram, perplexity
from imm.ngram import Ngram, evaluate
from tests.language import tiny


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


class TestCharacters:
    def test_each_character_is_a_word_and_a_line_end_is_one(self, write):
        vocabulary = Vocabulary(["<unk>", "<eos>", "a", " ", "ö"], level="char")
        pieces = list(encode(write("t", "a ö\n\nba"), vocabulary))
        assert [n for tokens, _ in pieces for n in tokens.tolist()] == [2, 3, 4, 1, 1, 0, 2, 1]
        assert sum(unknown for _, unknown in pieces) == 1

    @pytest.mark.parametrize("content", [b"ab\r\nc\r\n", b"ab\nc", b"\xef\xbb\xbfab\nc\n"])
    def test_line_ends_of_any_system_and_a_byte_order_mark(self, write, content):
        assert fit_ngram(write("t", content), 2, level="char").classes == ("<unk>", "<eos>", "a", "b", "c")

    def test_special_words_are_only_characters(self, write):
        assert set(fit_ngram(write("t", "<eos> <unk>"), 2, level="char").classes) == {"<unk>", "<eos>", *"<eos> <unk>"}

    def test_the_ngram_is_that_of_the_tokens(self, write):
        text = "the cat sat on the mat\n" * 3 + "größe\n"
        model = fit_ngram(write("t", text), 3, level="char")
        vocabulary = Vocabulary(model.classes, level="char")
        tokens = vocabulary.encode("<eos>" if c == "\n" else c for c in text)
        expected = Ngram.fit(tokens, model.classes, 3, eos=vocabulary.eos, unk=vocabulary.unk)
        short = torch.from_numpy(tokens[5:15]).long()
        torch.testing.assert_close(model(short), expected(short))
        frequency = [(tokens == i).sum() for i in range(2, len(model.classes))]
        assert frequency == sorted(frequency, reverse=True)

    def test_the_perplexity_of_a_file_is_that_of_its_characters(self, write):
        model = fit_ngram(write("t", "abab\nbaba\n" * 4), 2, level="char")
        tokens = Vocabulary(model.classes, level="char").encode(["a", "b", "<unk>", "<eos>"])
        found = perplexity(model, write("u", "abx\n"), level="char")
        assert found.unknown == 1
        assert found.evaluation == evaluate(model, [tokens])

    def test_another_level_is_refused(self, write):
        with pytest.raises(ValueError, match="level must be one of word, char, got 'byte'"):
            fit_ngram(write("t", "a"), 2, level="byte")
        with pytest.raises(ValueError, match="level must be one of word, char, got 'byte'"):
            Vocabulary(["<unk>", "<eos>"], level="byte")

    def test_a_text_of_empty_lines_is_refused(self, write):
        with pytest.raises(ValueError, match="has no words, only 2 empty lines"):
            fit_ngram(write("t", "\n\n"), 2, level="char")


class TestRead:
    def test_tokens_words_and_unknown_ones(self, write):
        train, valid, test = write("a", "the cat the\n"), write("b", "the dog sat\nthe\n"), write("c", "cat <unk> dog")
        texts = Texts.read(train, valid, test)
        assert texts.vocabulary.words == ("<unk>", "<eos>", "the", "cat")
        assert texts.train.tolist() == [2, 3, 2, 1]
        assert texts.valid.tolist() == [2, 0, 0, 1, 2, 1]
        assert texts.test.tolist() == [3, 0, 0, 1]
        assert texts.unknown == {"train": 0, "valid": 2, "test": 1}
        assert texts.bigram.classes == texts.vocabulary.words
        assert texts.train.dtype == torch.int64

    def test_without_a_test_text(self, write):
        texts = Texts.read(write("a", "x y\n"), write("b", "y x\n"))
        assert texts.test is None
        assert set(texts.unknown) == {"train", "valid"}

    def test_word_counts_are_those_of_the_tokens(self, write):
        path = write("a", "the cat the dog <unk> the cat\nthe\n")
        texts = Texts.read(path, path, min_count=2)
        assert texts.vocabulary.words == ("<unk>", "<eos>", "the", "cat")
        assert texts.counts.tolist() == torch.bincount(texts.train).tolist() == [2, 2, 4, 2]
        assert texts.unknown["train"] == 1  # <unk> itself is a word that is known

    def test_the_bigram_of_another_text_knows_the_words_of_both(self, write):
        train, more = write("a", "the cat sat\n"), write("b", "a cat the cat the mat\n")
        texts = Texts.read(train, train, ngram_text=more)
        assert set(texts.vocabulary.words) == {"<unk>", "<eos>", "the", "cat", "sat", "a", "mat"}
        number = {word: i for i, word in enumerate(texts.vocabulary.words)}
        counts = {word: int(texts.counts[i]) for word, i in number.items()}
        assert counts == {"<unk>": 0, "<eos>": 1, "the": 2, "cat": 2, "sat": 0, "a": 1, "mat": 1}
        assert texts.unknown["train"] == 0
        assert texts.bigram.score([number["cat"]], [number["the"]]) > texts.bigram.score(
            [number["cat"]], [number["sat"]]
        )

    @pytest.mark.parametrize(("min_count", "known"), [(1, {"x", "y", "z"}), (2, {"x", "y"}), (3, {"x", "y"})])
    def test_rare_is_rare_in_both_texts_together(self, write, min_count, known):
        texts = Texts.read(
            write("a", "x y z x y\n"), write("c", "x\n"), ngram_text=write("b", "x y\n"), min_count=min_count
        )
        assert set(texts.vocabulary.words) == {"<unk>", "<eos>"} | known
        assert texts.unknown["train"] == sum(word not in known for word in "xyzxy")
        assert (
            texts.counts.tolist()
            == torch.bincount(
                torch.from_numpy(texts.vocabulary.encode(["x", "y", "<eos>"])), minlength=len(texts.vocabulary)
            ).tolist()
        )

    def test_the_same_text_named_twice_is_counted_once(self, write):
        path = write("a", "x y x z z\n")
        other_name = path.parent / ".." / path.parent.name / "a"
        texts = Texts.read(path, path, ngram_text=other_name, min_count=2)
        assert texts.vocabulary.words == ("<unk>", "<eos>", "x", "z")

    def test_a_text_of_one_line(self, write):
        path = write("a", "x y")
        texts = Texts.read(path, path)
        assert texts.train.tolist() == [2, 3, 1]
        assert texts.counts.tolist() == [0, 1, 1, 1]

    def test_line_ends_of_any_system(self, write):
        dos, unix = write("a", "x y\r\nx\r\n"), write("b", "x y\nx\n")
        for level in ("word", "char"):
            a, b = Texts.read(dos, dos, level=level), Texts.read(unix, unix, level=level)
            assert a.fingerprint() == b.fingerprint()

    def test_characters(self, write):
        texts = Texts.read(write("a", "ab a\n"), write("b", "ba c\n"), level="char")
        assert texts.vocabulary.words == ("<unk>", "<eos>", "a", "b", " ")
        assert texts.valid.tolist() == [3, 2, 4, 0, 1]
        assert texts.counts.tolist() == [0, 1, 2, 1, 1]
        assert texts.unknown["valid"] == 1

    @pytest.mark.parametrize("min_count", [0, -1, 1.5])
    def test_a_bad_min_count_is_refused(self, write, min_count):
        with pytest.raises(ValueError, match=f"min_count must be a whole number of at least 1, got {min_count}"):
            Texts.read(write("a", "x\n"), write("b", "x\n"), min_count=min_count)

    def test_a_missing_file_is_named(self, write, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere"):
            Texts.read(write("a", "x\n"), tmp_path / "nowhere")


class TestFirst:
    def test_the_training_text_alone_is_cut(self):
        texts = tiny.texts(40)
        first = texts.first(0.25)
        assert torch.equal(first.train, texts.train[:10])
        assert first.bigram is texts.bigram
        assert torch.equal(first.valid, texts.valid)
        assert torch.equal(texts.first(1.0).train, texts.train)
        assert len(texts.first(0.001).train) == 2  # the least that one can learn from

    def test_the_bigram_can_be_counted_anew(self):
        texts = tiny.texts(40)
        first = texts.first(0.5, recount=True)
        assert first.counts.tolist() == torch.bincount(texts.train[:20], minlength=len(tiny.WORDS)).tolist()
        alone = Ngram.fit(texts.train[:20].numpy(), tiny.WORDS, 2, eos=1, unk=0)
        short = torch.arange(len(tiny.WORDS))
        assert torch.equal(first.bigram(short), alone(short))
        assert not torch.equal(first.bigram(short), texts.bigram(short))
        assert first.bigram.about == alone.about

    @pytest.mark.parametrize("fraction", [-0.1, 1.5, float("nan")])
    def test_what_is_no_fraction_is_refused(self, fraction):
        with pytest.raises(ValueError, match=f"fraction must be between 0 and 1, got {fraction}"):
            tiny.texts().first(fraction)


class TestFingerprint:
    def test_every_text_and_the_bigram_count(self):
        texts = tiny.texts(30)
        tokens = texts.train.clone()
        tokens[-1] = (tokens[-1] + 1) % len(tiny.WORDS)
        together = torch.cat([texts.train, texts.valid])
        others = [
            replace(texts, train=tokens),
            replace(texts, valid=texts.valid[:-1]),
            replace(texts, test=None),
            replace(texts, train=together[:20], valid=together[20:]),  # the same words, cut elsewhere
            replace(texts, vocabulary=Vocabulary([*tiny.WORDS[:-1], "other"])),
            replace(texts, bigram=Ngram.fit(texts.train.repeat(3).numpy(), tiny.WORDS, 2, eos=1, unk=0)),
        ]
        prints = [given.fingerprint() for given in (texts, *others)]
        assert len(set(prints)) == len(prints)
        assert tiny.texts(30).fingerprint() == prints[0]
