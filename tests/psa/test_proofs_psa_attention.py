"Each proof check of probabilistic slot attention goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests
from torch import nn

from disentangle_repro.psa import mixture as local

psa = Chapter("psa/02_probabilistic_slot_attention")

ITERATE, COURSE, UPDATE, DRAW = psa.iterate, psa.likelihood_course, psa.update, psa.draw


def one_map_for_all(keys, values, mixture, query, iterations):
    return COURSE(keys, keys, mixture, nn.Identity(), iterations)


def doubled_variance(keys, values, mixture, query, floor=psa.FLOOR):
    mixture, log_a = ITERATE(keys, values, mixture, query, floor)
    return mixture._replace(variance=2 * mixture.variance), log_a


def no_queries(keys, values, mixture, query, floor=psa.FLOOR):
    return ITERATE(keys, values, mixture, lambda mean: 0 * query(mean), floor)


def first_slot_first(keys, values, mixture, query, floor=psa.FLOOR):
    log_weight = mixture.log_weight + torch.arange(mixture.mean.shape[1]) / 10
    return ITERATE(keys, values, mixture._replace(log_weight=log_weight), query, floor)


def first_position_first(features, log_a, floor=psa.FLOOR):
    return UPDATE(features, log_a - torch.arange(log_a.shape[2]) / 100, floor)


def over_positions(keys, mixture):
    return local.log_joint(keys, mixture).log_softmax(2)


def random_map(dim):
    return nn.Linear(dim, dim, bias=False)


def scaled_by_the_variance(mean, scale, generator=None):
    return DRAW(mean, scale.square(), generator)


def without_the_mean(mean, scale, generator=None):
    return DRAW(0 * mean, scale, generator)


def inactive(weight, threshold):
    return weight <= threshold


def all_active(weight, threshold):
    return weight >= 0


def weights_of_the_start(keys, values, mixture, query, floor=psa.FLOOR):
    iterated, log_a = ITERATE(keys, values, mixture, query, floor)
    return iterated._replace(log_weight=mixture.log_weight), log_a


def slot_after_slot(slots, weight, threshold):
    kept = psa.active(weight, threshold).mT.nonzero()
    return slots[kept[:, 1], kept[:, 0]], kept[:, 1]


def the_same_slots_of_the_first_image(slots, weight, threshold):
    keep = psa.active(weight, threshold)
    return slots[:1].expand_as(slots)[keep], keep.nonzero()[:, 0]


def maps_in_every_iteration(keys, values, mixture, query, floor=psa.FLOOR):
    eye = torch.eye(values.first.shape[2]).to(values.first)
    return ITERATE(keys, values._replace(first=values.first @ eye), mixture, query, floor)


class TwiceMapped(nn.Linear):
    def forward(self, x):
        return super().forward(super().forward(x))


def twice_mapped(dim):
    linear = TwiceMapped(dim, dim, bias=False)
    nn.init.eye_(linear.weight)
    return linear


def full_covariances(keys, values, mixture, query, floor=psa.FLOOR):
    "Writes a number for each pair of dimensions, without a product of matrices."
    mixture, log_a = ITERATE(keys, values, mixture, query, floor)
    mean = mixture.mean
    for _ in range(4):
        mean = mean + 0 * (mean[:, :, :, None] * mean[:, :, None]).sum(3)
    return mixture._replace(mean=mean), log_a


def each_pair_of_positions(features):
    return local.statistics(features + 0 * (features @ features.mT) @ features)


def each_pair_of_slots(keys, values, mixture, query, floor=psa.FLOOR):
    mixture, log_a = ITERATE(keys, values, mixture, query, floor)
    return mixture, log_a + 0 * (log_a @ log_a.mT) @ log_a


BROKEN = [
    ("appendix E", "", "likelihood_course", one_map_for_all),
    ("appendix E", "", "iterate", doubled_variance),
    ("Algorithm 2, the layer", "", "iterate", doubled_variance),
    ("Algorithm 2, the layer", "", "iterate", no_queries),
    ("Algorithm 2, the layer", "", "identity_map", random_map),
    ("Algorithm 1", "", "iterate", first_slot_first),
    ("Algorithm 1", "", "update", first_position_first),
    ("Algorithm 1", "", "log_responsibilities", over_positions),
    ("Algorithm 1, the slots", "", "draw", scaled_by_the_variance),
    ("Algorithm 1, the slots", "", "draw", without_the_mean),
    ("section 4, relevance", "", "active", inactive),
    ("section 4, relevance", "", "active", all_active),
    ("section 4, relevance", "", "iterate", weights_of_the_start),
    ("section 4, relevance", "", "prune", slot_after_slot),
    ("section 4, relevance", "", "prune", the_same_slots_of_the_first_image),
    ("section 4, cost", "matrix products", "statistics", each_pair_of_positions),
    ("section 4, cost", "matrix products", "iterate", each_pair_of_slots),
    ("section 4, cost", "matrix products", "iterate", maps_in_every_iteration),
    ("section 4, cost", "matrix products", "identity_map", twice_mapped),
    ("section 4, cost", "O(T N K d)", "statistics", each_pair_of_positions),
    ("section 4, cost", "O(T N K d)", "iterate", full_covariances),
    ("section 4, cost", "twice", "iterate", maps_in_every_iteration),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(psa, BROKEN)
