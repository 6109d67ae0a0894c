"For every chapter: its proof checks go red when the formulas they stand for are broken, and none is left unbroken."

import pytest

from disentangle_repro.core.proofs import PROOF_CHECKS


def checks_of(chapter):
    return [check for check in PROOF_CHECKS.values() if check.check.__module__ == chapter.__name__]


def named(part):
    "A name that is the same in every process, which an address in memory is not."
    return part[:50] if isinstance(part, str) else getattr(part, "__name__", type(part).__name__)


def proof_tests(chapter, mutations):
    """Two tests of a chapter's module, to be bound to names that pytest collects.

    `mutations`: (proposition, words of its statement, name in the module, what is put there instead).
    """

    def check_of(proposition, words):
        (check,) = [c for c in checks_of(chapter) if c.proposition == proposition and words in c.statement]
        return check

    passed = set()

    @pytest.mark.parametrize(("proposition", "words", "name", "broken"), mutations, ids=named)
    def a_broken_formula_is_seen(monkeypatch, proposition, words, name, broken):
        check = check_of(proposition, words)
        if check not in passed:
            check()
            passed.add(check)
        monkeypatch.setattr(chapter, name, broken)
        with pytest.raises(AssertionError):
            check()

    def no_check_is_left_unbroken():
        broken = [check_of(proposition, words) for proposition, words, _, _ in mutations]
        assert [check.statement for check in checks_of(chapter) if check not in broken] == []

    return a_broken_formula_is_seen, no_check_is_left_unbroken
