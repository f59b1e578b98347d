"""All that ever went wrong, and a few hundred new documents, for every reader.

`python -m tests.fuzzing` tries as many as there is time for, and keeps what fails.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzzing.contracts import CONTRACTS, Contract
from tests.fuzzing.mutations import LONGEST, mutate
from tests.fuzzing.trial import complaint

MUTATED = 15
"""Documents for each reader."""

each_contract = pytest.mark.parametrize("contract", CONTRACTS, ids=lambda c: c.name)


@each_contract
def test_the_whole_corpus_is_read_as_promised(contract: Contract) -> None:
    documents = contract.documents()
    assert documents
    found = {path: complaint(contract, body) for path, body in documents.items()}
    assert not {path: said for path, said in found.items() if said}


@each_contract
def test_documents_made_of_the_corpus_are_read_as_promised(contract: Contract) -> None:
    documents = [*contract.documents().values()]
    for number in range(MUTATED):
        body = mutate(Random(f"{contract.name} {number}"), documents)
        assert len(body) <= LONGEST
        assert complaint(contract, body) == "", f"document {number}"


def test_the_same_chance_makes_the_same_document() -> None:
    documents = [b"<rss><item/></rss>", b'{"items": []}']
    made = [mutate(Random(seed), documents) for seed in range(50)]
    assert made == [mutate(Random(seed), documents) for seed in range(50)]
    assert len(set(made)) > 40


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda body: 1 // 0, "raised ZeroDivisionError"),
        (lambda body: "\ud800", "raised UnicodeEncodeError"),
        (lambda body, seen=[]: seen.append(1) or len(seen), "differently"),
    ],
)
def test_what_is_not_as_promised_is_complained_of(read: object, said: str) -> None:
    contract = Contract(name="wrong", read=read, errors=())  # type: ignore[arg-type]
    assert said in complaint(contract, b"")


def test_what_takes_long_is_complained_of() -> None:
    slow = Contract(name="slow", read=lambda body: sum(range(100_000)))
    assert complaint(slow, b"", seconds=0.0).startswith("took")
