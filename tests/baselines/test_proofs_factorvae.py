"Each proof check of FactorVAE goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

factorvae = Chapter("baselines/08_factorvae")


def whole_rows(codes, generator=None):
    return codes[torch.randperm(len(codes), generator=generator)]


class MovedTogether(factorvae.Factorised):
    def steps(self):
        return [step._replace(parameters=list(self.parameters())) for step in super().steps()]


PERMUTING, RATIO, TURNS = (f"FactorVAE, {name}" for name in ("permuting", "density ratio", "taking turns"))

BROKEN = [
    (PERMUTING, "", "permute", whole_rows),
    (RATIO, "", "permute", whole_rows),
    (TURNS, "", "Factorised", MovedTogether),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(factorvae, BROKEN)
