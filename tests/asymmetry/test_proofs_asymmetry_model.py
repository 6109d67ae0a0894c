"Each proof check of attention, the interaction loss and the Transformer-VAE goes red when its formula is broken."

import torch
from mutations import Chapter, proof_tests

cross_attention = Chapter("asymmetry/05_cross_attention")
transformer_vae = Chapter("asymmetry/06_transformer_vae")
attention = Chapter("nets/00_attention")


class Unscaled(attention.MultiHeadAttention):
    def weighed(self, asking, asked):
        scale, self.scale = self.scale, 1.0
        told = super().weighed(asking, asked)
        self.scale = scale
        return told


class WithoutBias(attention.MultiHeadAttention):
    def weighed(self, asking, asked):
        heard, weights = super().weighed(asking, asked)
        return heard - self.out.bias, weights


class OneHeadForAll(attention.MultiHeadAttention):
    def weighed(self, asking, asked):
        heard, weights = super().weighed(asking, asked)
        return heard, weights[:, :1].expand_as(weights)


class DeafAttention(attention.MultiHeadAttention):
    def keys_and_values(self, asked):
        return super().keys_and_values(0 * asked)


def numbered(asked):
    return asked + torch.arange(asked.shape[1])[:, None] * torch.arange(asked.shape[2])


class Numbered(attention.Transformer):
    def weighed(self, tokens, asked):
        return super().weighed(tokens, numbered(asked))

    def forward(self, tokens, asked):
        return super().forward(tokens, numbered(asked))


def shared_among_the_asking(queries, keys, scale=None):
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    return (scale * queries @ keys.mT).softmax(dim=-2)


class KeysAsValues(attention.MultiHeadAttention):
    def keys_and_values(self, asked):
        return super().keys_and_values(asked)[::-1]


class RootOfAllHeads(attention.MultiHeadAttention):
    def __init__(self, *sizes, inner, **settings):
        super().__init__(*sizes, inner=inner, **settings, scale=inner**-0.5)


class NoNorm(torch.nn.LayerNorm):
    def forward(self, tokens):
        return tokens


class WithoutNorm(attention.TransformerLayer):
    def __init__(self, *sizes, **settings):
        super().__init__(*sizes, **settings)
        self.alone[0] = NoNorm(self.alone[0].normalized_shape)


class OneNormForTwo(attention.TransformerLayer):
    def among(self, tokens):
        if self.own is not None:
            normed = self.norm_asking(tokens)
            tokens = tokens + self.own(normed, normed)
        return tokens + self.alone(tokens)


class Replaces(attention.TransformerLayer):
    def among(self, tokens):
        return super().among(tokens) - tokens


def with_relu(*sizes):
    return DENSE(*sizes, rectifier=torch.nn.ReLU)


DENSE = attention.dense
HEADS, LAYER = "appendix F, attention with heads", "section 5, one layer"
APPENDIX_F, TRANSFORMER = "appendix F, attention", "section 5, Transformer"

BROKEN_ATTENTION = [
    (HEADS, "", "MultiHeadAttention", KeysAsValues),
    (HEADS, "", "MultiHeadAttention", RootOfAllHeads),
    (HEADS, "", "MultiHeadAttention", WithoutBias),
    (LAYER, "", "MultiHeadAttention", KeysAsValues),
    (LAYER, "", "TransformerLayer", WithoutNorm),
    (LAYER, "", "TransformerLayer", OneNormForTwo),
    (LAYER, "", "TransformerLayer", Replaces),
    (LAYER, "", "dense", with_relu),
    (APPENDIX_F, "", "MultiHeadAttention", Unscaled),
    (APPENDIX_F, "", "MultiHeadAttention", WithoutBias),
    (APPENDIX_F, "", "MultiHeadAttention", OneHeadForAll),
    (APPENDIX_F, "", "MultiHeadAttention", DeafAttention),
    (APPENDIX_F, "", "attention_weights", shared_among_the_asking),
    (TRANSFORMER, "", "Transformer", Numbered),
    (TRANSFORMER, "", "MultiHeadAttention", Unscaled),
    (TRANSFORMER, "", "MultiHeadAttention", DeafAttention),
]

test_a_broken_attention_is_seen, test_no_attention_check_is_left_unbroken = proof_tests(attention, BROKEN_ATTENTION)


def leaking(queries, keys, scale=None):
    return 0.9 * WEIGHTS(queries, keys, scale) + 0.1 / len(keys)


def earlier_louder(slots, *layer):
    heard, weights = CROSS(slots, *layer)
    return heard, weights / torch.arange(1, len(slots) + 1)


def without_the_others(weights):
    return weights.diag_embed()


def value_only(slots, queries, key, value):
    return value.expand(len(queries), len(slots), -1, -1)


def without_weights(slots, *layer):
    return RESPONSE(slots, *layer)


def each_pair_twice(weights):
    return 2 * PAIRS(weights)


def for_whole_rows_only(weights):
    return (1 - weights.square().sum(-1)) / 2


def each_head_alone(told, protocol="paper"):
    return torch.stack([PAIRS(layer).mean() for layer in told]).mean()


def always_averaged(told, protocol="paper"):
    return LOSS(told, "code")


class LastLayerOnly(attention.Transformer):
    def weighed(self, tokens, asked):
        told, weights = super().weighed(tokens, asked)
        return told, weights[-1:]


class FirstHeadOnly(attention.Transformer):
    def weighed(self, tokens, asked):
        told, weights = super().weighed(tokens, asked)
        return told, [layer[:, :1] for layer in weights]


WEIGHTS, CROSS, RESPONSE = attention.attention_weights, cross_attention.cross_attention, cross_attention.response
PAIRS, LOSS = cross_attention.pair_products, cross_attention.interaction_loss
HEADS, LAYERS = "appendix F.1, heads and layers", "appendix F.2, heads and layers"

BROKEN_LOSS = [
    ("equation 5.2", "", "attention_weights", shared_among_the_asking),
    ("equation 5.2", "", "cross_attention", earlier_louder),
    ("equation F.6", "", "softmax_derivative", without_the_others),
    ("equation F.8", "", "response", value_only),
    ("equation F.8", "", "slot_derivative", without_weights),
    ("equation F.8, limit", "", "attention_weights", leaking),
    (HEADS, "", "Transformer", LastLayerOnly),
    (HEADS, "", "Transformer", FirstHeadOnly),
    ("equation F.9", "sum of products", "pair_products", each_pair_twice),
    ("equation F.9", "zero exactly", "pair_products", for_whole_rows_only),
    ("equation F.9", "even row", "pair_products", each_pair_twice),
    (LAYERS, "all agree", "interaction_loss", each_head_alone),
    (LAYERS, "squared", "interaction_loss", always_averaged),
    ("appendix F.2, compositional contrast", "", "pair_products", each_pair_twice),
    ("appendix F.2, compositional contrast", "", "response", value_only),
]

test_a_broken_loss_is_seen, test_no_loss_check_is_left_unbroken = proof_tests(cross_attention, BROKEN_LOSS)


class Deaf(transformer_vae.TransformerDecoder):
    def forward(self, slots):
        return super().forward(0 * slots)


class Ordered(transformer_vae.TransformerDecoder):
    def forward(self, slots):
        return super().forward(slots * torch.arange(1, slots.shape[1] + 1)[:, None])


class WeightsInOneOrder(transformer_vae.TransformerDecoder):
    def forward(self, slots):
        drawn = super().forward(slots)
        return drawn._replace(attention=[layer.sort(dim=3).values for layer in drawn.attention])


class SortedQueries(transformer_vae.LearnedQueries):
    def forward(self, batch, generator=None):
        return super().forward(batch, generator).sort(dim=1).values


def without_entropy(mean, scale):
    return (mean.square() + scale.square() - 1) / 2


def unspread(mean, scale, generator=None):
    return DRAW(mean, torch.ones_like(scale), generator)


class AlwaysWarm(transformer_vae.TransformerVAE):
    def anneal(self, done):
        pass


class WarmsTwiceAsFast(transformer_vae.TransformerVAE):
    def anneal(self, done):
        super().anneal(2 * done)


class ReadsThePaper(transformer_vae.TransformerVAE):
    def __init__(self, *modules, protocol, **settings):
        super().__init__(*modules, **settings)


DRAW = transformer_vae.draw
SWAPPED = dict(zip(("code", "paper"), transformer_vae.DEVIATIONS.values(), strict=True))
KL = "section 5, KL term"

BROKEN_MODEL = [
    ("section 5, encoder", "", "Transformer", Numbered),
    ("section 5, encoder", "", "LearnedQueries", SortedQueries),
    (KL, "", "gaussian_kl", without_entropy),
    (KL, "", "draw", unspread),
    (KL, "", "DEVIATIONS", SWAPPED),
    ("section 5, decoder", "", "TransformerDecoder", Deaf),
    ("section 5, decoder", "", "TransformerDecoder", Ordered),
    ("section 5, decoder", "", "TransformerDecoder", WeightsInOneOrder),
    ("equation 5.3", "", "TransformerVAE", AlwaysWarm),
    ("equation 5.3", "", "TransformerVAE", WarmsTwiceAsFast),
    ("equation 5.3", "", "TransformerVAE", ReadsThePaper),
]

test_a_broken_model_is_seen, test_no_model_check_is_left_unbroken = proof_tests(transformer_vae, BROKEN_MODEL)
