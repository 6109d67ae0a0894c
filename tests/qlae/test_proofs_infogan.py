"Each proof check of the two InfoGANs goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests
from torch.nn import functional as F

from disentangle_repro.baselines.autoencoder import Step
from disentangle_repro.baselines.infogan import InfoGAN
from disentangle_repro.qlae.latent_quantization import LatentQuantizer

infogan = Chapter("baselines/05_infogan")
quantized_infogan = Chapter("qlae/05_quantized_infogan")


def summed(read, latents):
    return F.mse_loss(read, latents, reduction="sum") / len(read)


def turned(of_fake, of_real):
    return of_real.mean() - of_fake.mean()


def summed_values(of_fake, of_real):
    return of_fake.sum() - of_real.sum()


def a_place_for_each_pixel(real, fake, generator=None):
    return torch.lerp(fake, real, torch.rand(real.shape, generator=generator))


def one_place_for_all(real, fake, generator=None):
    return torch.lerp(fake, real, torch.rand((), generator=generator))


def near_the_real_ones(real, fake, generator=None):
    return torch.lerp(fake, real, 0.5 + 0.5 * torch.rand((len(real), 1, 1, 1), generator=generator))


def penalty_of(deviation):
    def penalty(critic, points):
        points = points.detach().requires_grad_()
        (gradients,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
        return deviation(gradients.flatten(1)).mean()

    return penalty


def length(gradients):
    return torch.linalg.vector_norm(gradients, dim=1)


only_where_too_steep = penalty_of(lambda g: (length(g) - 1).clamp(min=0).square())
of_squared_lengths = penalty_of(lambda g: (length(g).square() - 1).square())
of_a_constant = penalty_of(lambda g: length(g.detach()) * (length(g) - 2) + 1)  # the right value, half the gradient
towards_two = penalty_of(lambda g: (length(g) - 2).square())


class EncoderMovesTwice(InfoGAN):
    def steps(self):
        *judging, generating = super().steps()
        return [*judging, Step([*generating.parameters, *self.encoder.parameters()], generating.loss)]


class OtherWeightForTheEncoder(InfoGAN):
    def critic_loss(self, images, generator=None):
        loss, terms = super().critic_loss(images, generator)
        return loss - 100 * terms["latents"], terms


class CriticForgotten(InfoGAN):
    def steps(self):
        *judging, generating = super().steps()
        return [Step(list(self.encoder.parameters()), step.loss) for step in judging] + [generating]


class WithGraph(InfoGAN):
    def critic_loss(self, images, generator=None):
        with torch.enable_grad():
            latents, fake = self.generate(len(images), generator, images.device)
        terms = {**super().critic_loss(images, generator)[1], **self.read_back(fake, latents, generator)}
        return self.weighted(0.0, terms), terms


class CodebooksWithTheEncoder(InfoGAN):
    def steps(self):
        *judging, generating = super().steps()
        codebooks = list(self.latent.parameters())
        judging = [Step([*step.parameters, *codebooks], step.loss) for step in judging]
        return [*judging, Step(list(self.decoder.parameters()), generating.loss)]


class AtOddsWithTheCritic(InfoGAN):
    def critic_loss(self, images, generator=None):
        terms = super().critic_loss(images, generator)[1]
        terms["critic_value"] = -terms["critic_value"]
        return self.weighted(0.0, terms), terms


class FaintPenalty(InfoGAN):
    def weighted(self, loss, penalties):
        return super().weighted(loss, {k: v / 10 if k == "gradient_penalty" else v for k, v in penalties.items()})


class WantsToBeTakenForFake(InfoGAN):
    def generator_loss(self, images, generator=None):
        terms = super().generator_loss(images, generator)[1]
        terms["generator_value"] = -terms["generator_value"]
        return self.weighted(0.0, terms), terms


class ReadsTheLogits(InfoGAN):
    def read_back(self, fake, latents, generator):
        return super().read_back(fake.logit(), latents, generator)


class FromAnotherCode(LatentQuantizer):
    def sample(self, n, generator=None):
        return super().sample(n, generator).flip(1)


class DrawnAsConstants(LatentQuantizer):
    def sample(self, n, generator=None):
        return super().sample(n, generator).detach()


BROKEN = [
    ("equation 3", "", "reading_loss", summed),
    ("equation 3", "", "reading_loss", F.l1_loss),
    ("equation 3", "", "WEIGHTS", infogan.WEIGHTS | {"latents": 20.0}),
    ("equation 3", "", "InfoGAN", OtherWeightForTheEncoder),
    ("Algorithm 3, line 8", "", "value_difference", turned),
    ("Algorithm 3, line 8", "", "value_difference", summed_values),
    ("Algorithm 3, line 9", "", "interpolate", a_place_for_each_pixel),
    ("Algorithm 3, line 9", "", "interpolate", one_place_for_all),
    ("Algorithm 3, line 9", "", "interpolate", near_the_real_ones),
    ("Algorithm 3, line 10", "linear critic", "gradient_penalty", only_where_too_steep),
    ("Algorithm 3, line 10", "linear critic", "gradient_penalty", of_squared_lengths),
    ("Algorithm 3, line 10", "finite differences", "gradient_penalty", of_a_constant),
    ("Algorithm 3, lines 8 to 10", "", "gradient_penalty", towards_two),
    ("Algorithm 3, lines 8 to 10", "", "value_difference", summed_values),
    ("Algorithm 3, lines 14 and 22", "", "InfoGAN", EncoderMovesTwice),
    ("Algorithm 3, lines 14 and 22", "", "InfoGAN", CriticForgotten),
    ("Algorithm 3, lines 14 and 22", "", "InfoGAN", WithGraph),
]
BROKEN_QUANTIZED = [
    ("Algorithm 3, lines 5 to 13", "", "InfoGAN", AtOddsWithTheCritic),
    ("Algorithm 3, lines 5 to 13", "", "InfoGAN", FaintPenalty),
    ("Algorithm 3, lines 5 to 13", "", "InfoGAN", ReadsTheLogits),
    ("Algorithm 3, lines 5 to 13", "", "LatentQuantizer", FromAnotherCode),
    ("Algorithm 3, lines 15 to 23", "", "InfoGAN", WantsToBeTakenForFake),
    ("Algorithm 3, lines 15 to 23", "", "InfoGAN", ReadsTheLogits),
    ("Algorithm 3, lines 15 to 23", "", "LatentQuantizer", DrawnAsConstants),
    ("Algorithm 3, line 14", "", "InfoGAN", WithGraph),
    ("Algorithm 3, line 14", "", "InfoGAN", CodebooksWithTheEncoder),
    ("Algorithm 3, lines 22 and 23", "", "LatentQuantizer", DrawnAsConstants),
    ("Algorithm 3, lines 22 and 23", "", "InfoGAN", CodebooksWithTheEncoder),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(infogan, BROKEN)
test_a_broken_quantized_formula_is_seen, test_no_quantized_check_is_left_unbroken = proof_tests(
    quantized_infogan, BROKEN_QUANTIZED
)
