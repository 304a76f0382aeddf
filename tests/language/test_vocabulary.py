import numpy as np
import pytest

from imm.experiments.data import data_file, data_folder
from imm.language import Vocabulary, encode, fit_ngram, perplexity
from imm.language.text_file import blocks
from imm.ngram import Ngram, evaluate

TEXT = "the cat sat\n\nthe größe the\n"


def write(tmp_path, content):
    path = tmp_path / "text.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestBlocks:
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    @pytest.mark.parametrize("content", [TEXT, TEXT.strip(), "a " * 30, "\n\n", "größe", "a\tb\r\nc"])
    def test_words_and_lines_are_the_files(self, content, size, tmp_path):
        read = list(blocks(write(tmp_path, content), size=size))
        whole = b"".join(read)
        assert whole.split() == content.encode().split() == [word for block in read for word in block.split()]
        assert whole.endswith(b"\n")
        assert whole.count(b"\n") == len(content.splitlines())

    def test_progress_is_told_and_ends_at_all(self, tmp_path):
        told = []
        list(blocks(write(tmp_path, TEXT), lambda *now: told.append(now), size=10))
        assert told[0] == (10, len(TEXT.encode()))
        assert told[-1] == (len(TEXT.encode()),) * 2

    def test_a_byte_order_mark_is_no_word(self, tmp_path):
        assert b"".join(blocks(write(tmp_path, TEXT.encode("utf-8-sig")))) == TEXT.encode()

    @pytest.mark.parametrize("size", [4, 1000])
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", r"text.txt is empty"),
            (b"the cat\nsat on the gr\xf6\xdfe\n", r"text.txt: byte 21 \(0xf6\) is not UTF-8"),
            (b"\xef\xbb\xbfthe gr\xf6\xdfe\n", r"text.txt: byte 9 \(0xf6\) is not UTF-8"),
            ("a b".encode("utf-16"), r"text.txt: byte . (is zero|\(0xff\) is not UTF-8)"),
            (b"the cat sat\nP\0Q", r"text.txt: byte 13 is zero, so this is no UTF-8 text"),
        ],
    )
    def test_what_is_no_text_is_refused_with_its_place(self, content, message, size, tmp_path):
        with pytest.raises(ValueError, match=message) as refused:
            list(blocks(write(tmp_path, content), size=size))
        assert "\n" not in str(refused.value)

    def test_a_missing_file_and_a_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere"):
            list(blocks(tmp_path / "nowhere"))
        with pytest.raises(IsADirectoryError, match="is a folder"):
            list(blocks(tmp_path))


class TestVocabulary:
    def test_numbers_and_unknown_words(self, tmp_path):
        vocabulary = Vocabulary(["<unk>", "<eos>", "the", "größe"])
        pieces = list(encode(write(tmp_path, TEXT + "<unk>"), vocabulary))
        assert np.concatenate([tokens for tokens, _ in pieces]).tolist() == [2, 0, 0, 1, 1, 2, 3, 2, 1, 0, 1]
        assert sum(unknown for _, unknown in pieces) == 2

    @pytest.mark.parametrize(
        ("words", "convention", "message"),
        [
            (["<eos>", "a"], "stream", "the vocabulary lacks <unk>"),
            (["<unk>", "<eos>"], "sentence", "lacks </s>, <s>"),
            (["<unk>", "<eos>", "a", "a"], "stream", "has a word twice"),
            (["<unk>"], "poem", "convention must be one of stream, sentence, got 'poem'"),
        ],
    )
    def test_a_bad_one_is_refused(self, words, convention, message):
        with pytest.raises(ValueError, match=message):
            Vocabulary(words, convention)


class TestFit:
    def test_the_classes_are_by_falling_frequency(self, tmp_path):
        path = write(tmp_path, "b a\nc a <unk> c a\n")
        assert fit_ngram(path, 2).classes == ("<unk>", "<eos>", "a", "c", "b")
        assert fit_ngram(path, 2, "sentence").classes == ("<unk>", "</s>", "<s>", "a", "c", "b")
        about = fit_ngram(path, 2, "sentence").about
        assert (about.unk, about.eos, about.bos) == (0, 1, 2)

    @pytest.mark.parametrize("convention", ["stream", "sentence"])
    def test_it_is_the_model_of_the_tokens(self, convention, tmp_path, monkeypatch):
        """In blocks of seven bytes, so that tokens come in many pieces."""
        path = write(tmp_path, TEXT * 20 + "a cat saw the größe\n" * 3)
        whole = fit_ngram(path, 3, convention)
        vocabulary = Vocabulary(whole.classes, convention)
        tokens = np.concatenate([piece for piece, _ in encode(path, vocabulary)])
        expected = Ngram.fit(
            tokens, whole.classes, 3, convention, eos=vocabulary.eos, bos=vocabulary.bos, unk=vocabulary.unk
        )
        monkeypatch.setattr(blocks, "__defaults__", (None, 7))
        pieces = fit_ngram(path, 3, convention)
        for model in (whole, pieces):
            assert model.about == expected.about
            assert np.array_equal(model.trie.base, expected.trie.base)
            for got, wanted in zip(model.trie.levels, expected.trie.levels, strict=True):
                assert np.array_equal(got.keys, wanted.keys)
                assert np.array_equal(got.values, wanted.values)
        assert perplexity(pieces, path).evaluation.perplexity == pytest.approx(evaluate(expected, [tokens]).perplexity)

    def test_rare_words_are_unknown(self, tmp_path):
        rare = fit_ngram(write(tmp_path, "a b a c\na a d b\n"), 2, min_count=2)
        replaced = fit_ngram(write(tmp_path, "a b a <unk>\na a <unk> b\n"), 2)
        assert rare.classes == replaced.classes == ("<unk>", "<eos>", "a", "b")
        assert np.array_equal(rare.trie.levels[0].keys, replaced.trie.levels[0].keys)
        assert np.array_equal(rare.trie.levels[0].values, replaced.trie.levels[0].values)

    def test_a_given_vocabulary(self, tmp_path):
        model = fit_ngram(write(tmp_path, "a b a c\n"), 2, vocabulary=["c", "x", "a", "x"])
        assert model.classes == ("<unk>", "<eos>", "a", "c", "x")

    def test_unknown_words_are_counted_and_predicted_as_unk(self, tmp_path):
        model = fit_ngram(write(tmp_path, "a b <unk> a\n" * 5), 2)
        result = perplexity(model, write(tmp_path, "a b new b\n"))
        assert result.unknown == 1
        assert result.evaluation.tokens == 4
        same = perplexity(model, write(tmp_path, "a b <unk> b\n"))
        assert same == (result.evaluation, 0)

    def test_a_text_of_one_line_without_end(self, tmp_path):
        model = fit_ngram(write(tmp_path, "a"), 3, "sentence")
        assert evaluate(model, [[3, 1]]).tokens == 2

    @pytest.mark.parametrize(
        ("content", "convention", "message"),
        [
            ("\n \n\n", "stream", "has no words, only 3 empty lines"),
            ("a\nb <eos>\n", "stream", "line 2 has the word <eos>"),
            ("a\n<s> b </s>\n", "sentence", "line 2 has the word </s>"),
            ("a", "poem", "convention must be one of"),
        ],
    )
    def test_bad_texts_are_refused_in_one_line(self, content, convention, message, tmp_path):
        with pytest.raises(ValueError, match=message) as refused:
            fit_ngram(write(tmp_path, content), 2, convention)
        assert "\n" not in str(refused.value)

    def test_words_that_only_look_like_a_line_end_are_words(self, tmp_path):
        assert "x<eos>" in fit_ngram(write(tmp_path, "a x<eos>\n"), 2).classes
        assert "<eos>" in fit_ngram(write(tmp_path, "a <eos>\n"), 2, "sentence").classes


class TestData:
    def test_the_variable_names_the_folder(self, monkeypatch, tmp_path):
        monkeypatch.setenv("IMM_DATA", str(tmp_path))
        assert data_folder() == tmp_path
        (tmp_path / "ptb").mkdir()
        (tmp_path / "ptb" / "x").touch()
        assert data_file("ptb/x") == tmp_path / "ptb" / "x"

    def test_a_missing_file_says_where_and_how(self, monkeypatch, tmp_path):
        monkeypatch.setenv("IMM_DATA", str(tmp_path))
        with pytest.raises(FileNotFoundError, match=r"ptb/x was looked for in .* Mikolov's Penn Treebank .* IMM_DATA"):
            data_file("ptb/x")

    def test_without_it_beside_the_repository_or_the_cache(self, monkeypatch, tmp_path):
        monkeypatch.delenv("IMM_DATA", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert data_folder() in {data_folder().parents[1] / "shared" / "data", tmp_path / "imm"}
        monkeypatch.setattr(
            "imm.experiments.data.__file__", str(tmp_path / "r" / "src" / "imm" / "language" / "data.py")
        )
        assert data_folder() == tmp_path / "imm"
        (tmp_path / "r").mkdir()
        (tmp_path / "r" / "pyproject.toml").touch()
        (tmp_path / "shared" / "data").mkdir(parents=True)
        assert data_folder() == tmp_path / "shared" / "data"
