"Each proof check of FactorVAE goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

factorvae = Chapter("baselines/08_factorvae")


def whole_rows(codes, generator=None):
    return codes[torch.randperm(len(codes), generator=generator)]


<<<<<<< HEAD
def torn_apart(codes, generator=None):
    return permute(codes.flatten(1), generator).view_as(codes)


def turned_round(codes, generator=None):
    "Latents are shifted by random amounts: of six orders of three rows only three are seen."
    shifts = torch.randint(len(codes), codes.shape[1:2], generator=generator)
    return factorvae.reorder(codes, (torch.arange(len(codes))[:, None] + shifts) % len(codes))


def other_sign(of_joint, of_permuted):
    return -discriminator_loss(of_joint, of_permuted)


def other_way_round(of_joint, of_permuted):
    return discriminator_loss(of_permuted, of_joint)


def summed(of_joint):
    return of_joint.sum()


def detached(of_joint):
    return of_joint.detach().mean() + 0 * of_joint.sum()


class JudgedWithGradient(factorvae.Factorised):
    def judging_loss(self, images, generator=None):
        codes, _ = self.latent.coded(self.encoder(self.prepared(images)), generator)
        loss = discriminator_loss(*self.discriminator(torch.cat([codes, permute(codes, generator)])).chunk(2))
        return loss, {"discriminator": loss}


=======
>>>>>>> house
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
