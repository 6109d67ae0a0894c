"Each proof check of the models that qlae compares with goes red when the formula it stands for is broken."

from functools import partial

import torch
from mutations import Chapter, proof_tests

autoencoder = Chapter("baselines/01_autoencoder")
bioae = Chapter("baselines/03_bioae")
variational = Chapter("baselines/02_variational")
vqvae = Chapter("baselines/04_vqvae")


vector_losses = vqvae.vector_losses
gaussian_kl, draw, kl_terms = variational.gaussian_kl, variational.draw, variational.kl_terms
aggregate_log_densities = variational.aggregate_log_densities
biological_penalties, least_energy = bioae.biological_penalties, bioae.least_energy
nearest_vector = vqvae.nearest_vector


def kl_without_the_logarithm(mean, scale):
    return gaussian_kl(mean, scale) + scale.log()


def drawn_with_the_variance(mean, scale, generator=None):
    return draw(mean, scale.square(), generator)


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


VAE_LOSS, TCVAE_LOSS = "VAE, Kingma and Welling equation 3", "beta-TCVAE, Chen et al. equation 4"
VARIATIONAL = [
    (VAE_LOSS, "", "draw", drawn_with_the_variance),
    (TCVAE_LOSS, "", "aggregate_log_densities", aggregate_without_the_batch_size),
    ("VAE, Kingma and Welling section 2.4", "", "draw", drawn_with_the_variance),
    ("VAE, Kingma and Welling appendix B", "", "gaussian_kl", kl_without_the_logarithm),
    ("beta-TCVAE, Chen et al. equation 2", "add up", "kl_terms", terms_without_the_prior),
    ("beta-TCVAE, Chen et al. equation 2", "integral", "aggregate_log_densities", aggregate_without_the_batch_size),
    ("beta-TCVAE, Chen et al. equation 3", "recovered", "aggregate_log_densities", aggregate_without_the_batch_size),
    ("beta-TCVAE, Chen et al. equation 3", "no batch", "aggregate_log_densities", aggregate_of_summed_densities),
]


def activity_of_the_size(latents):
    return biological_penalties(latents) | {"activity": latents.abs().mean()}


def not_shifted(mixing, sources, nonnegative=True):
    return least_energy(mixing, sources, nonnegative=False)


def always_shifted(mixing, sources, nonnegative=True):
    return least_energy(mixing, sources, nonnegative=True)


BIOAE = [
    ("BioAE, Whittington et al., penalties", "", "biological_penalties", activity_of_the_size),
    ("BioAE, Whittington et al. figure 1", "rotated", "least_energy", not_shifted),
    ("BioAE, Whittington et al. figure 1", "signs are free", "least_energy", always_shifted),
    ("BioAE, Whittington et al., linear codes", "cheapest of all", "least_energy", not_shifted),
    ("BioAE, Whittington et al., linear codes", "dependent", "least_energy", not_shifted),
]


def longest_dot_product(parts, codebook):
    return (parts @ codebook.T).argmax(2)


def straight_through_to_the_codebook(continuous, quantized):
    return quantized + (continuous - continuous.detach())


def summed_over_a_vector(parts, vectors):
    return {name: parts.shape[2] * loss for name, loss in vector_losses(parts, vectors).items()}


def always_the_first(parts, codebook):
    return torch.zeros_like(nearest_vector(parts, codebook))


VQVAE = [
    ("VQ-VAE, van den Oord et al. equation 1", "", "nearest_vector", longest_dot_product),
    ("VQ-VAE, van den Oord et al. equation 3", "", "straight_through", straight_through_to_the_codebook),
    ("VQ-VAE, van den Oord et al. equation 3", "", "vector_losses", summed_over_a_vector),
    ("figure 2", "", "nearest_vector", always_the_first),
]


def of_one_image(model, *parts, **options):
    made = model(*parts, **options)
    return type("OfOneImage", (), {"loss": lambda self, images: made.loss(images[:1])})()


AUTOENCODER = [("equation 2", "", "Autoencoder", partial(of_one_image, autoencoder.Autoencoder))]

test_a_broken_likelihood_is_seen, test_no_likelihood_check_is_left_unbroken = proof_tests(autoencoder, AUTOENCODER)
test_a_broken_bound_is_seen, test_no_check_of_bounds_is_left_unbroken = proof_tests(variational, VARIATIONAL)
test_a_broken_energy_is_seen, test_no_check_of_energy_is_left_unbroken = proof_tests(bioae, BIOAE)
test_a_broken_quantiser_is_seen, test_no_check_of_the_quantiser_is_left_unbroken = proof_tests(vqvae, VQVAE)
