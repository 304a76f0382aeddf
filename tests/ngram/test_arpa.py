import contextlib
import gzip

import numpy as np
import pytest
import torch

from imm.ngram import Ngram
from imm.ngram.arpa import read_arpa, write_arpa

WORDS = ["</s>", "<s>", "<unk>", "hund", "größe", "a", "b"]
EOS, BOS, UNK = 0, 1, 2


def text(seed, n=400):
    rng = np.random.default_rng(seed)
    return np.append(rng.choice([0, 2, 3, 4, 5, 6], n - 1, p=[0.15, 0.02, 0.4, 0.03, 0.3, 0.1]), EOS)


def model(seed, order):
    return Ngram.fit(text(seed), WORDS, order, "sentence", eos=EOS, bos=BOS, unk=UNK)


each_order = pytest.mark.parametrize("order", [2, 3, 4, 5])


@each_order
@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
def test_what_is_read_is_what_was_written(order, name, seed, tmp_path):
    written = model(seed, order)
    write_arpa(written, tmp_path / name)
    read = read_arpa(tmp_path / name)
    assert read.classes == written.classes
    assert read.order == order
    assert (read.about.convention, read.about.eos, read.about.bos, read.about.unk) == ("arpa", EOS, BOS, UNK)
    rng = np.random.default_rng(seed)
    for length in range(1, order):
        short = rng.integers(len(WORDS), size=(40, length))
        torch.testing.assert_close(read(short), written(short), rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(read.parts(short).dense(), read(short))


def test_gz_is_compressed_and_always_the_same(tmp_path):
    for name in ("a.gz", "b.gz", "c"):
        write_arpa(model(0, 3), tmp_path / name)
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == (tmp_path / "c").read_bytes()
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@each_order
def test_kenlm_agrees_to_a_millionth(order, seed, tmp_path):
    kenlm = pytest.importorskip("kenlm", reason="the kenlm package is not installed (pip install '.[bench]')")
    ours = model(seed, order)
    write_arpa(ours, tmp_path / "model.arpa")
    theirs = kenlm.Model(str(tmp_path / "model.arpa"))
    for sentence in np.split(text(seed + 1), np.flatnonzero(text(seed + 1) == EOS) + 1):
        history, logs = [BOS], []
        for word in sentence.tolist():
            logs.append(ours.score([history[-order + 1 :]], [word]).log10().item())
            history.append(word)
        if sentence.size:
            scores = theirs.full_scores(" ".join(WORDS[word] for word in sentence[:-1]))
            assert [score[0] for score in scores] == pytest.approx(logs, abs=1e-6)


def test_a_back_off_model_that_does_not_interpolate(tmp_path):
    """As SRILM writes it: no <unk>, -99 for <s>, words in any order, weights left out, P(b|a) below the back-off's."""
    (tmp_path / "katz.arpa").write_text(
        "made by hand\n\n\\data\\\nngram 1=4\nngram 2=3\n\n"
        "\\1-grams:\n-99\t<s>\t-0.30103\n-0.30103\tb\n-0.60206\ta\t0.1760913\n-0.60206\t</s>\n\n"
        "\\2-grams:\n-1\ta b\n-0.2218487 a a\n-0.30103 <s> a\n\n\\end\\\n"
    )
    read = read_arpa(tmp_path / "katz.arpa")
    assert read.classes == ("<s>", "b", "a", "</s>")
    expected = [[0, 0.25 / 0.5 * 0.5, 0.5, 0.125], [0, 0.5, 0.25, 0.25], [0, 0.1, 0.6, 0.375]]
    torch.testing.assert_close(read.probabilities([0, 1, 2]), torch.tensor(expected), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("first", ["0\t<s>\t-0.5", "-99\t<s>\t-0.5", "-1.5\t<s>\t-0.5"])
def test_the_start_of_a_sentence_is_never_predicted(first, tmp_path):
    rest = "-0.30103\t</s>\n-0.30103\ta\t0"
    (tmp_path / "x").write_text(
        f"\\data\\\nngram 1=3\nngram 2=1\n\\1-grams:\n{first}\n{rest}\n\\2-grams:\n-0.1 a a\n\\end\\\n"
    )
    assert read_arpa(tmp_path / "x").probabilities([1])[0].tolist() == pytest.approx([0, 0.5, 0.5])


def test_a_word_without_probability_is_written_as_never(tmp_path):
    written = Ngram.fit([3, 0, 1, 0, 1], ["<eos>", "a", "b", "first"], 2, zero_counts="keep")
    write_arpa(written, tmp_path / "x")
    assert "-99.0000000\tb\t" in (tmp_path / "x").read_text()
    torch.testing.assert_close(read_arpa(tmp_path / "x")([0, 2]), written([0, 2]))


GOOD = "\\data\\\nngram 1=2\nngram 2=1\n\\1-grams:\n-0.3 a\n-0.3 b\n\\2-grams:\n-0.1 a b\n\\end\\\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"is not an ARPA file: it has no \\data\\"),
        ("hello\n", r"is not an ARPA file"),
        (GOOD.replace("ngram 2=1", "ngram 3=1"), "expected 'ngram 2=...', found 'ngram 3=1'"),
        (GOOD.replace("ngram 2=1", "ngram 2=x"), "found 'ngram 2=x'"),
        (GOOD.replace("ngram 2=1\n", ""), "of order 2 at least, has order 1"),
        (GOOD.replace("ngram 2=1", "ngram 2=3"), r"expected 3 lines of 2-grams, found '\\\\end"),
        (GOOD.replace("-0.1 a b", "-0.1 a c"), "'c' is in a 2-gram, but not a 1-gram"),
        (GOOD.replace("-0.1 a b", "x a b"), "among the 2-grams, could not convert string to float: b'x'"),
        (GOOD.replace("-0.1 a b", "nan a b"), "above 0 or not finite"),
        (GOOD.replace("-0.1 a b", "0.1 a b"), "above 0 or not finite"),
        (GOOD.replace("-0.3 a", "-0.3 a 400"), "1-grams is a log10 weight above 99 or not finite"),
        (GOOD.replace("-0.1 a b", "-0.1 a b\n-0.2 a a"), r"expected \\end\\, found '-0.2 a a'"),
        (GOOD.replace("\\end\\\n", "\\3-grams:\n-0.1 a b a\n\\end\\\n"), r"expected \\end\\, found '\\\\3-grams:'"),
        (GOOD.replace("\\end\\\n", ""), r"expected \\end\\, found 'the end of the file'"),
        (GOOD.replace("2=1", "2=99999999999999999999"), "expected 99999999999999999999 lines of 2-grams"),
        (GOOD.replace("-0.3 b", "-0.3 a"), "has the same 1-gram twice"),
        (GOOD.replace("2=1", "2=2").replace("-0.1 a b", "-0.1 a b\n-0.2 a b"), "has the same 2-gram twice"),
        (GOOD.replace("\\2-grams:", "\\3-grams:"), r"expected \\2-grams:, found"),
        (
            GOOD.replace("2=1\n", "2=1\nngram 3=1\n").replace("\\end", "\\3-grams:\n-0.1 b a b\n\\end"),
            "has 'b a b', but not 'b a'",
        ),
    ],
)
def test_what_is_no_arpa_file_is_refused_in_one_line(content, message, tmp_path):
    (tmp_path / "x").write_text(content)
    with pytest.raises(ValueError, match=message) as refused:
        read_arpa(tmp_path / "x")
    assert "\n" not in str(refused.value)


def test_the_good_one_is_read(tmp_path):
    (tmp_path / "x").write_text(GOOD)
    assert read_arpa(tmp_path / "x").classes == ("a", "b")


def test_undecodable_bytes_and_half_an_archive_are_refused(tmp_path):
    (tmp_path / "x").write_bytes(GOOD.replace(" a", " \xe4").encode("latin1"))
    with pytest.raises(ValueError, match=r"x is not UTF-8: it has the word b'\\xe4'"):
        read_arpa(tmp_path / "x")
    write_arpa(model(0, 2), tmp_path / "y.gz")
    (tmp_path / "y.gz").write_bytes((tmp_path / "y.gz").read_bytes()[:200])
    with pytest.raises(ValueError, match="cannot be read as an ARPA file"):
        read_arpa(tmp_path / "y.gz")


def test_every_damaged_byte_of_an_archive_is_refused_or_harmless(tmp_path):
    whole = gzip.compress(GOOD.encode(), mtime=0)
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        (tmp_path / "x.gz").write_bytes(broken)
        with contextlib.suppress(ValueError):
            assert read_arpa(tmp_path / "x.gz").classes == ("a", "b")


def test_a_mark_of_byte_order_is_no_part_of_the_file(tmp_path):
    (tmp_path / "x").write_text("\ufeff" + GOOD, encoding="utf-8")
    assert read_arpa(tmp_path / "x").classes == ("a", "b")


def test_words_may_hold_white_space_beyond_ascii(tmp_path):
    words = ["<eos>", "no\u00a0break", "wide\u3000space", "line\u2028end"]
    written = Ngram.fit([1, 2, 3, 0, 2, 1, 3, 0], words, 3)
    write_arpa(written, tmp_path / "x")
    read = read_arpa(tmp_path / "x")
    assert read.classes == tuple(words)
    torch.testing.assert_close(read([[1, 2], [2, 3]]), written([[1, 2], [2, 3]]))


def test_a_sentence_start_that_is_predicted_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="an ARPA file cannot hold <s> as a word that stands in the text"):
        write_arpa(Ngram.fit([1, 2, 0, 1, 2, 0], ["<eos>", "<s>", "a"], 2), tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_sentence_start_that_stands_nowhere_is_never_predicted_and_the_others_add_up(tmp_path):
    """As tokenizers have one that a text may do without."""
    write_arpa(Ngram.fit([2, 3, 0, 3, 2, 0], ["</s>", "<s>", "a", "b"], 2), tmp_path / "x")
    found = read_arpa(tmp_path / "x")([0, 2, 3])
    assert found[:, 1].tolist() == [0, 0, 0]
    torch.testing.assert_close(found.sum(1), torch.ones(3))


def test_words_with_white_space_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="an ARPA file cannot hold the word 'a b'"):
        write_arpa(Ngram.fit([0, 1], ["a b", "c"], 2), tmp_path / "x")
    assert not list(tmp_path.iterdir())
