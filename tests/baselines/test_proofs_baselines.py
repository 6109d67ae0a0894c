"Each proof check of the models that qlae compares with goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

bioae = Chapter("baselines/03_bioae")
variational = Chapter("baselines/02_variational")
vqvae = Chapter("baselines/04_vqvae")


gaussian_kl, draw, kl_terms = variational.gaussian_kl, variational.draw, variational.kl_terms
aggregate_log_densities = variational.aggregate_log_densities
biological_penalties, least_energy, nearest_vector = (
    bioae.biological_penalties,
    bioae.least_energy,
    vqvae.nearest_vector,
)


def kl_without_the_logarithm(mean, scale):
    return gaussian_kl(mean, scale) + scale.log()


def kl_the_other_way_round(mean, scale):
    return scale.log() + (1 + mean.square()) / (2 * scale.square()) - 0.5


def drawn_with_the_variance(mean, scale, generator=None):
    return draw(mean, scale.square(), generator)


def drawn_without_a_gradient(mean, scale, generator=None):
    return draw(mean, scale, generator).detach() + 0 * (mean + scale)


def drawn_with_a_constant_scale(mean, scale, generator=None):
    return draw(mean, scale.detach(), generator) + 0 * scale


def aggregate_without_the_batch_size(z, mean, scale):
    together, alone = aggregate_log_densities(z, mean, scale)
    size = torch.tensor(len(mean)).log()
    return together + size, alone + size


def aggregate_of_summed_densities(z, mean, scale):
    together, alone = aggregate_log_densities(z, mean, scale)
    return alone.sum(1), alone


def terms_without_the_prior(z, mean, scale):
    terms = kl_terms(z, mean, scale)
    return terms | {"dimension_kl": -torch.zeros_like(terms["dimension_kl"])}


def terms_counted_twice(z, mean, scale):
    terms = kl_terms(z, mean, scale)
    return terms | {"mutual_information": terms["mutual_information"] + terms["total_correlation"]}


def of_exponentials(encoded, deviation="softplus"):
    mean, raw = encoded.chunk(2, dim=1)
    return mean, raw.exp()


def interleaved(encoded, deviation="softplus"):
    return MEAN_AND_SCALE(torch.cat([encoded[:, ::2], encoded[:, 1::2]], dim=1))


class Averaged(variational.GaussianLatent):
    def penalties(self, latents, mean, scale):
        return {"kl": gaussian_kl(mean, scale).mean()}


def with_beta_everywhere(n_latents, *, beta, **nets):
    model = BETA_TCVAE(n_latents, beta=beta, **nets)
    model.weights = dict.fromkeys(model.weights, model.weights["total_correlation"])
    return model


MEAN_AND_SCALE, BETA_TCVAE = variational.mean_and_scale, variational.beta_tcvae
VAE_LOSS, TCVAE_LOSS = "VAE, Kingma and Welling equation 3", "beta-TCVAE, Chen et al. equation 4"
VARIATIONAL = [
    (VAE_LOSS, "", "mean_and_scale", of_exponentials),
    (VAE_LOSS, "", "mean_and_scale", interleaved),
    (VAE_LOSS, "", "gaussian_kl", kl_the_other_way_round),
    (VAE_LOSS, "", "draw", drawn_with_the_variance),
    (VAE_LOSS, "", "GaussianLatent", Averaged),
    (VAE_LOSS, "", "pixel_values", lambda **nets: 64 * 64),
    (TCVAE_LOSS, "", "aggregate_log_densities", aggregate_without_the_batch_size),
    (TCVAE_LOSS, "", "kl_terms", terms_counted_twice),
    (TCVAE_LOSS, "", "beta_tcvae", with_beta_everywhere),
    (TCVAE_LOSS, "", "mean_and_scale", of_exponentials),
    ("VAE, Kingma and Welling section 2.4", "", "draw", drawn_with_the_variance),
    ("VAE, Kingma and Welling section 2.4", "", "draw", drawn_without_a_gradient),
    ("VAE, Kingma and Welling section 2.4", "", "draw", drawn_with_a_constant_scale),
    ("VAE, Kingma and Welling appendix B", "", "gaussian_kl", kl_without_the_logarithm),
    ("VAE, Kingma and Welling appendix B", "", "gaussian_kl", kl_the_other_way_round),
    ("beta-TCVAE, Chen et al. equation 2", "add up", "kl_terms", terms_without_the_prior),
    ("beta-TCVAE, Chen et al. equation 2", "add up", "kl_terms", terms_counted_twice),
    ("beta-TCVAE, Chen et al. equation 2", "integral", "aggregate_log_densities", aggregate_without_the_batch_size),
    ("beta-TCVAE, Chen et al. equation 2", "integral", "aggregate_log_densities", aggregate_of_summed_densities),
    ("beta-TCVAE, Chen et al. equation 3", "recovered", "aggregate_log_densities", aggregate_without_the_batch_size),
    ("beta-TCVAE, Chen et al. equation 3", "recovered", "aggregate_log_densities", aggregate_of_summed_densities),
    ("beta-TCVAE, Chen et al. equation 3", "no batch", "aggregate_log_densities", aggregate_of_summed_densities),
]


def activity_of_the_size(latents):
    return biological_penalties(latents) | {"activity": latents.abs().mean()}


def not_shifted(mixing, sources, nonnegative=True):
    return least_energy(mixing, sources, nonnegative=False)


def always_shifted(mixing, sources, nonnegative=True):
    return least_energy(mixing, sources, nonnegative=True)


def offset_of_a_cube(mixing, sources, nonnegative=True):
    return (sources @ mixing.T).square().mean(0).sum() + mixing.abs().sum(1).square().sum()


def signs_forgotten(latents):
    return biological_penalties(latents) | {"nonnegative": latents.abs().mean()}


class Mirrored(bioae.BiologicalLatent):
    def forward(self, continuous, generator=None):
        return bioae.LatentOutput(continuous, biological_penalties(-continuous))


BIOAE = [
    ("BioAE, Whittington et al., penalties", "", "biological_penalties", activity_of_the_size),
    ("BioAE, Whittington et al., penalties", "", "biological_penalties", signs_forgotten),
    ("BioAE, Whittington et al., penalties", "", "BiologicalLatent", Mirrored),
    ("BioAE, Whittington et al. figure 1", "rotated", "least_energy", not_shifted),
    ("BioAE, Whittington et al. figure 1", "rotated", "biological_penalties", activity_of_the_size),
    ("BioAE, Whittington et al. figure 1", "signs are free", "least_energy", always_shifted),
    ("BioAE, Whittington et al. figure 1", "signs are free", "biological_penalties", activity_of_the_size),
    ("BioAE, Whittington et al., linear codes", "cheapest of all", "least_energy", not_shifted),
    ("BioAE, Whittington et al., linear codes", "cheapest of all", "biological_penalties", activity_of_the_size),
    ("BioAE, Whittington et al., linear codes", "dependent", "least_energy", offset_of_a_cube),
    ("BioAE, Whittington et al., linear codes", "dependent", "least_energy", not_shifted),
]


def longest_dot_product(parts, codebook):
    return (parts @ codebook.T).argmax(2)


def halved_norms(parts, codebook):
    return (codebook.square().sum(1) / 2 - 2 * parts @ codebook.T).argmin(2)


def undetached(parts, vectors):
    distance = (parts - vectors).square().mean()
    return {"quantize": distance, "commit": distance}


def straight_through_to_the_codebook(continuous, quantized):
    return quantized + (continuous - continuous.detach())


def as_printed(continuous, quantized):
    return continuous + (quantized - continuous).detach()


def always_the_first(parts, codebook):
    return torch.zeros_like(nearest_vector(parts, codebook))


VQVAE = [
    ("VQ-VAE, van den Oord et al. equation 1", "", "nearest_vector", longest_dot_product),
    ("VQ-VAE, van den Oord et al. equation 1", "", "nearest_vector", halved_norms),
    ("VQ-VAE, van den Oord et al. equation 3", "", "vector_losses", undetached),
    ("VQ-VAE, van den Oord et al. equation 3", "", "straight_through", straight_through_to_the_codebook),
    ("figure 2", "", "nearest_vector", always_the_first),
    ("figure 2", "", "straight_through", as_printed),
]

test_a_broken_variational_formula_is_seen, test_no_variational_check_is_left_unbroken = proof_tests(
    variational, VARIATIONAL
)
test_a_broken_energy_is_seen, test_no_check_of_energy_is_left_unbroken = proof_tests(bioae, BIOAE)
test_a_broken_quantiser_is_seen, test_no_check_of_the_quantiser_is_left_unbroken = proof_tests(vqvae, VQVAE)
