from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protocols.openfeeder.write.page_chunks import Candidate, WordRanker

CANDIDATES = st.lists(
    st.builds(Candidate, title=st.text(max_size=30), text=st.text(max_size=60))
)


def rank(query: str, *texts: str) -> list[float]:
    return WordRanker().rank(query, [Candidate(text=each) for each in texts])


def test_more_of_the_words_more_often_and_rarer_ones_count_for_more() -> None:
    both, one, often, none = rank("red apple", "red apple", "red", "red red", "pear")
    assert both > often > one > none == 0
    rare, common = rank("red apple", "apple", "red", "red", "red")[:2]
    assert rare > common


def test_titles_count_for_more_than_texts() -> None:
    ranked = WordRanker().rank(
        "apple", [Candidate(title="Apple", text="."), Candidate(text="an apple")]
    )
    assert ranked[0] > ranked[1] > 0


def test_without_words_nothing_answers() -> None:
    assert rank("?!", "what?!") == [0.0]
    assert rank("apple") == []


@given(st.text(max_size=40), CANDIDATES)
def test_scores_are_from_0_to_1_one_for_each(
    query: str, candidates: list[Candidate]
) -> None:
    scores = WordRanker().rank(query, candidates)
    assert len(scores) == len(candidates)
    assert all(0.0 <= each <= 1.0 for each in scores)
