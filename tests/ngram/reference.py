"""The slow and obvious twin of :mod:`imm.ngram`: dictionaries of n-grams, the definitions written out."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

Gram = tuple[int, ...]


def _occurrences(tokens: Sequence[int], n: int, eos: int | None, bos: int | None) -> Counter[Gram]:
    pieces = [list(tokens)]
    if bos is not None:
        pieces, sentence = [], [bos]
        for token in tokens:
            sentence.append(token)
            if token == eos:
                pieces.append(sentence)
                sentence = [bos]
        pieces.append(sentence)
    grams = Counter(tuple(piece[i : i + n]) for piece in pieces for i in range(len(piece) - n + 1))
    return Counter({gram: count for gram, count in grams.items() if gram != (bos,)})


def _discounts(counts: list[int]) -> list[float]:
    n = [0] + [counts.count(j) for j in (1, 2, 3, 4)]
    if 0 in n[1:4]:
        return [0, 0.5, 1, 1.5]
    y = n[1] / (n[1] + 2 * n[2])
    d = [0] + [j - (j + 1) * y * n[j + 1] / n[j] for j in (1, 2, 3)]
    return d if min(d) >= 0 else [0, 0.5, 1, 1.5]


def kneser_ney(
    tokens: Sequence[int],
    n_words: int,
    order: int,
    eos: int | None = None,
    bos: int | None = None,
    zero_counts: str = "one",
) -> Callable[[int, Gram], float]:
    """``P(word | context)`` as a function of the word and the last tokens."""
    adjusted: dict[int, dict[Gram, int]] = {order: dict(_occurrences(tokens, order, eos, bos))}
    for n in range(1, order):
        before = defaultdict(set)
        for gram in _occurrences(tokens, n + 1, eos, bos):
            before[gram[1:]].add(gram[0])
        adjusted[n] = {
            gram: count if gram[0] == bos else len(before[gram])
            for gram, count in _occurrences(tokens, n, eos, bos).items()
        }
    discounts = {n: _discounts(list(adjusted[n].values())) for n in adjusted}
    rows: dict[Gram, dict[int, int]] = defaultdict(dict)
    for grams in adjusted.values():
        for gram, count in grams.items():
            if count:
                rows[gram[:-1]][gram[-1]] = count

    def unigram(word: int) -> float:
        counts = {w: adjusted[1].get((w,), 0) for w in range(n_words)}
        if bos is None:
            if zero_counts == "one":
                counts = {w: max(count, 1) for w, count in counts.items()}
            return counts[word] / sum(counts.values())
        if word == bos:
            return 0.0
        d = discounts[1]
        total = sum(counts.values())
        missing = sum(d[min(count, 3)] for count in counts.values()) / total
        return (counts[word] - d[min(counts[word], 3)]) / total + missing / (n_words - 1)

    def p(word: int, context: Gram) -> float:
        if not context:
            return unigram(word)
        row = rows.get(context)
        if not row:
            return p(word, context[1:])
        d = discounts[len(context) + 1]
        total = sum(row.values())
        missing = sum(d[min(count, 3)] for count in row.values()) / total
        count = row.get(word, 0)
        return (count - d[min(count, 3)]) / total + missing * p(word, context[1:])

    return p
