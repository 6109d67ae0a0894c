"Each proof check of probabilistic slot attention goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests
from torch import nn

from disentangle_repro.psa import mixture as local

psa = Chapter("psa/02_probabilistic_slot_attention")

ITERATE, COURSE, UPDATE, DRAW = psa.iterate, psa.likelihood_course, psa.update, psa.draw


def one_map_for_all(keys, values, mixture, query, iterations):
    return COURSE(keys, keys, mixture, nn.Identity(), iterations)


def no_queries(keys, values, mixture, query, floor=psa.FLOOR):
    return ITERATE(keys, values, mixture, lambda mean: 0 * query(mean), floor)


def variances_of_keys(keys, values, mixture, query, floor=psa.FLOOR):
    after, log_a = ITERATE(keys, values, mixture, query, floor)
    return after._replace(variance=UPDATE(keys, log_a, floor).variance), log_a


def first_position_first(features, log_a, floor=psa.FLOOR):
    return UPDATE(features, log_a - torch.arange(log_a.shape[2]) / 100, floor)


def scaled_by_the_variance(mean, scale, generator=None):
    return DRAW(mean, scale.square(), generator)


def inactive(weight, threshold):
    return weight <= threshold


def maps_in_every_iteration(keys, values, mixture, query, floor=psa.FLOOR):
    eye = torch.eye(values.first.shape[2]).to(values.first)
    return ITERATE(keys, values._replace(first=values.first @ eye), mixture, query, floor)


def each_pair_of_positions(features):
    return local.statistics(features + 0 * (features @ features.mT) @ features)


BROKEN = [
    ("appendix E", "", "likelihood_course", one_map_for_all),
    ("Algorithm 2, the layer", "", "iterate", no_queries),
    ("Algorithms 1 to 3", "", "iterate", variances_of_keys),
    ("Algorithms 1 to 3", "", "iterate", lambda k, v, start, query, floor: ITERATE(k, v, start, nn.Identity(), floor)),
    ("Algorithms 1 to 3", "", "iterate", lambda k, v, start, query, floor: ITERATE(v, v, start, query, floor)),
    ("Algorithm 1", "", "update", first_position_first),
    ("Algorithm 1, the slots", "", "draw", scaled_by_the_variance),
    ("section 4, relevance", "", "active", inactive),
    ("section 4, cost", "matrix products", "statistics", each_pair_of_positions),
    ("section 4, cost", "O(T N K d)", "statistics", each_pair_of_positions),
    ("section 4, cost", "twice", "iterate", maps_in_every_iteration),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(psa, BROKEN)
