"Each proof check of probabilistic slot attention goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests
from torch import nn

from disentangle_repro.psa import mixture as local

psa = Chapter("psa/02_probabilistic_slot_attention")

ITERATE, UPDATE, DRAW = psa.iterate, psa.update, psa.draw
Layer = psa.ProbabilisticSlotAttention


def likelihood_of_keys(keys, values, mixture, query):
    return psa.log_likelihood(keys, mixture._replace(mean=query(mixture.mean)))


def likelihood_of_values(keys, values, mixture, query):
    return psa.log_likelihood(values, mixture._replace(mean=query(mixture.mean)))


def likelihood_without_queries(keys, values, mixture, query):
    return psa.log_likelihood(keys, mixture)


def course_of(log_likelihood=likelihood_of_keys, step=ITERATE):
    def course(keys, values, mixture, query, iterations):
        rows = []
        for _ in range(iterations + 1):
            rows.append(log_likelihood(keys, values, mixture, query))
            mixture, _ = step(keys, values, mixture, query)
        return torch.stack(rows) / keys.first.shape[1]

    return course


def no_queries(keys, values, mixture, query, floor=psa.FLOOR):
    return ITERATE(keys, values, mixture, lambda mean: 0 * query(mean), floor)


def variances_of_keys(keys, values, mixture, query, floor=psa.FLOOR):
    after, log_a = ITERATE(keys, values, mixture, query, floor)
    return after._replace(variance=UPDATE(keys, log_a, floor).variance), log_a


def first_position_first(features, log_a, floor=psa.FLOOR):
    return UPDATE(features, log_a - torch.arange(log_a.shape[2]) / 100, floor)


def one_variance_for_all_dimensions(features, log_a, floor=psa.FLOOR):
    after = UPDATE(features, log_a, floor)
    return after._replace(variance=after.variance.mean(2, keepdim=True).expand_as(after.variance))


def equal_weights(keys, values, mixture, query, floor=psa.FLOOR):
    return ITERATE(keys, values, mixture._replace(log_weight=0 * mixture.log_weight), query, floor)


def scaled_by_the_variance(mean, scale, generator=None):
    return DRAW(mean, scale.square(), generator)


def one_draw_for_all_images(mean, scale, generator=None):
    return DRAW(mean[:1], scale[:1], generator).expand_as(mean)


def one_noise_for_all_slots(mean, scale, generator=None):
    first = torch.zeros_like(mean[:, :1])
    return mean + scale * DRAW(first, first + 1, generator)


def one_noise_for_all_dimensions(mean, scale, generator=None):
    first = torch.zeros_like(mean[:, :, :1])
    return mean + scale * DRAW(first, first + 1, generator)


class LayerNormed(Layer):
    def __init__(self, n_slots, dim, **options):
        super().__init__(n_slots, dim, **options)
        if isinstance(self.norm, psa.Standardised):
            self.norm = nn.LayerNorm(dim)


class LearnedVarianceWithoutFloor(Layer):
    def start(self, features, generator=None):
        mixture = super().start(features, generator)
        learned = self.queries == "learned"
        return mixture._replace(variance=self.log_variance.exp().expand_as(mixture.mean)) if learned else mixture


class SampledByVariancesOfKeys(Layer):
    def forward(self, features, generator=None, *, sampled=None):
        out = super().forward(features, generator, sampled=sampled)
        share = (out.attention / out.attention.sum(1, keepdim=True)).mT
        keys = self.to_key(self.norm(features))
        variance = (share @ keys.square() - (share @ keys).square()).clamp_min(self.floor)
        return out._replace(slots=out.mean + (out.slots - out.mean) * (variance / out.variance).sqrt())


class DrawnStartsMapped(Layer):
    def start(self, features, generator=None):
        mixture = super().start(features, generator)
        learned = self.queries == "learned"
        return mixture if learned else mixture._replace(mean=self.to_query(mixture.mean))


class ProjectedSamplesMappedTwice(Layer):
    def forward(self, features, generator=None, *, sampled=None):
        out = super().forward(features, generator, sampled=sampled)
        mapped = self.to_value(out.mean) if self.projected else out.mean
        return out._replace(slots=out.slots + mapped - out.mean)


def inactive(weight, threshold):
    return weight <= threshold


def maps_in_every_iteration(keys, values, mixture, query, floor=psa.FLOOR):
    eye = torch.eye(values.first.shape[2]).to(values.first)
    return ITERATE(keys, values._replace(first=values.first @ eye), mixture, query, floor)


def each_pair_of_positions(features):
    return local.statistics(features + 0 * (features @ features.mT) @ features)


BROKEN = [
    ("appendix E", "", "likelihood_course", course_of(likelihood_of_values)),
    ("appendix E", "", "likelihood_course", course_of(likelihood_without_queries)),
    ("appendix E", "", "likelihood_course", course_of(step=lambda k, v, mixture, query: ITERATE(k, k, mixture, query))),
    ("appendix E", "", "likelihood_course", course_of(step=lambda k, v, mixture, query: ITERATE(v, v, mixture, query))),
    ("appendix E", "", "likelihood_course", course_of(step=lambda k, v, mix, query: ITERATE(k, v, mix, nn.Identity()))),
    ("Algorithm 2, the layer", "", "iterate", no_queries),
    ("Algorithms 1 to 3", "", "iterate", variances_of_keys),
    ("Algorithms 1 to 3", "", "iterate", lambda k, v, start, query, floor: ITERATE(k, v, start, nn.Identity(), floor)),
    ("Algorithms 1 to 3", "", "iterate", lambda k, v, start, query, floor: ITERATE(v, v, start, query, floor)),
    ("Algorithms 1 to 3", "", "draw", lambda mean, scale, generator: DRAW(mean, 1.2 * scale, generator)),
    ("Algorithms 1 to 3", "", "draw", lambda mean, scale, generator: DRAW(mean + 1, scale, generator)),
    ("Algorithms 1 to 3", "", "draw", one_draw_for_all_images),
    ("Algorithms 1 to 3", "", "ProbabilisticSlotAttention", DrawnStartsMapped),
    ("Algorithms 1 to 3", "", "ProbabilisticSlotAttention", LayerNormed),
    ("Algorithms 1 to 3", "", "ProbabilisticSlotAttention", LearnedVarianceWithoutFloor),
    ("Algorithm 1", "", "update", first_position_first),
    ("Algorithm 1", "", "update", one_variance_for_all_dimensions),
    ("Algorithm 1", "", "iterate", equal_weights),
    ("Algorithm 1, the slots", "", "draw", scaled_by_the_variance),
    ("Algorithm 1, the slots", "", "draw", one_noise_for_all_slots),
    ("Algorithm 1, the slots", "", "draw", one_noise_for_all_dimensions),
    ("Algorithm 1, the slots", "", "ProbabilisticSlotAttention", SampledByVariancesOfKeys),
    ("Algorithm 1, the slots", "", "ProbabilisticSlotAttention", ProjectedSamplesMappedTwice),
    ("section 4, relevance", "", "active", inactive),
    ("section 4, cost", "matrix products", "statistics", each_pair_of_positions),
    ("section 4, cost", "O(T N K d)", "statistics", each_pair_of_positions),
    ("section 4, cost", "twice", "iterate", maps_in_every_iteration),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(psa, BROKEN)
