"""Makes tripod.json by running https://github.com/kylehkhsu/tripod; no test runs this.

Python 3.11, with versions from the time of the repository:

    python -m venv scratch
    scratch/bin/pip install jax==0.4.25 jaxlib==0.4.25 equinox==0.11.3 optax==0.2.1 scikit-learn==1.2.2 "numpy<2" \
        "scipy<1.13" dm-pix==0.4.2 einops omegaconf
    git clone https://github.com/kylehkhsu/tripod CLONE
    PYTHONPATH=PROJECT/tests/parity scratch/bin/python PROJECT/benchmarks/parity/make_tripod.py CLONE [NAMES OF CASES]

Packages that only debugging and reading data need are replaced by empty modules. The networks are made of the released
blocks, an eighth as wide; their widths are constants there. Everything runs in float64.
"""

import subprocess
import sys
from functools import partial
from types import ModuleType
from unittest.mock import MagicMock

import numpy as np
from parity_numbers import HERE, images, read, representations, stream, summary, weight, write

clone = sys.argv[1]
sys.path.insert(0, clone)
for unneeded in ("ipdb", "disentangle.datasets"):
    sys.modules[unneeded] = MagicMock(spec=ModuleType(unneeded))

import disentangle as theirs  # noqa: E402
import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.experimental  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from disentangle.metrics import dci as their_dci  # noqa: E402
from disentangle.nn import layers as their_layers  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

jax.config.update("jax_enable_x64", True)

BATCH, N_LATENTS, N_VALUES, N_PERTURBATIONS, EPSILON = 5, 4, 12, 2, 0.1
ENCODER_WIDTHS, DECODER_WIDTHS, CONDITION = (4, 8, 16, 32, 64), (64, 32, 16, 8, 3), 32
OPTIMIZER = {"learning_rate": 1e-3, "clip": 1e-3, "weight_decay": 0.3}
STEPS, DATASET_SIZE = 3, 1000
LAYERS = ["cond", "block0", "block1", "block2"]
key = jax.random.PRNGKey


def narrow_encoder(*, latent_size, key):
    "The released encoder, with narrower blocks in the same places."
    whole, keys = theirs.nn.ResidualEncoder(latent_size=latent_size, key=key), iter(jax.random.split(key, 20))
    stages = []
    for number, (width, following) in enumerate(zip(ENCODER_WIDTHS, ENCODER_WIDTHS[1:], strict=False)):
        first = 3 if number == 0 else width
        stages.append(
            (
                their_layers.ResConvBlock(first, out_channels=width, key=next(keys)),
                their_layers.ResConvBlock(width, key=next(keys)),
                their_layers.Downsample(width, out_channels=following, key=next(keys)),
            )
        )
    hidden = ENCODER_WIDTHS[-1]
    dense = eqx.nn.Sequential(
        [
            whole.dense.layers[0],
            their_layers.LinearLayerNormAct(hidden, hidden, key=next(keys)),
            eqx.nn.Linear(hidden, latent_size, key=next(keys)),
        ]
    )
    return eqx.tree_at(lambda encoder: (encoder.down_blocks, encoder.dense), whole, (tuple(stages), dense))


def narrow_decoder(*, latent_size, key):
    "The released decoder, likewise."
    whole = theirs.nn.ResidualDecoder(latent_size=latent_size, normalize_outputs=False, key=key)
    keys = iter(jax.random.split(key, 20))
    stages = tuple(
        (
            their_layers.ResCondConvBlock(CONDITION, width, key=next(keys)),
            their_layers.ResCondConvBlock(CONDITION, width, key=next(keys)),
            their_layers.Upsample(width, out_channels=following, key=next(keys)),
            eqx.nn.Identity(),
        )
        for width, following in zip(DECODER_WIDTHS, DECODER_WIDTHS[1:], strict=False)
    )
    condition = eqx.nn.Sequential(
        [
            their_layers.LinearLayerNormAct(latent_size, CONDITION, key=next(keys)),
            their_layers.LinearLayerNormAct(CONDITION, key=next(keys)),
        ]
    )
    start = whole.input[: DECODER_WIDTHS[0]]
    return eqx.tree_at(lambda d: (d.input, d.cond_mlp, d.up_blocks), whole, (start, condition, stages))


def same(array):
    return array


def single(array):
    "With a leading dimension of one."
    return array[None]


def column(array):
    "A bias of a convolution, which has two dimensions of one there."
    return array.reshape(-1)


def unfolded(array):
    "A kernel of one pixel on folded pixels as one of two by two pixels."
    return array.reshape(array.shape[0], -1, 2, 2)


def both(place, module, bias=same, layout=same):
    yield f"{place}.weight", module.weight, layout
    yield f"{place}.bias", module.bias, bias


def residual_encoder(encoder):
    "Our name of each parameter: where it is in theirs, and how it is laid out."
    for stage, (*residual, down) in enumerate(encoder.down_blocks):
        for number, block in enumerate(residual):
            place = f"encoder.stages.{stage}.{number}"
            for layer, part in enumerate((block.block1, block.block2)):
                yield from both(f"{place}.convolutions.{layer}", part.layers[0], column)
                yield from both(f"{place}.norms.{layer}", part.layers[1])
            if isinstance(block.identity, eqx.nn.Conv2d):
                yield from both(f"{place}.shortcut", block.identity, column)
        yield from both(f"encoder.stages.{stage}.2", down.layers[1], column, unfolded)
    yield from both("encoder.head.0.0", encoder.dense.layers[1].layers[0])
    yield from both("encoder.head.0.1", encoder.dense.layers[1].layers[1])
    yield from both("encoder.head.1", encoder.dense.layers[2])


def residual_decoder(decoder):
    yield "decoder.start", decoder.input, single
    for number, block in enumerate(decoder.cond_mlp.layers):
        yield from both(f"decoder.condition.{number}.0", block.layers[0])
        yield from both(f"decoder.condition.{number}.1", block.layers[1])
    for stage, (*residual, up, _) in enumerate(decoder.up_blocks):
        for number, block in enumerate(residual):
            place = f"decoder.stages.{stage}.blocks.{number}"
            for layer, part in enumerate((block.block1, block.block2)):
                yield from both(f"{place}.convolutions.{layer}", part.conv, column)
                yield from both(f"{place}.norms.{layer}.projection", part.cond_proj)
        yield from both(f"decoder.stages.{stage}.doubling", up.layers[1], column)


def parameters(model):
    yield from residual_encoder(model.encoder)
    yield from residual_decoder(model.decoder)


def given_weights(model):
    "The model with our weights in float64."
    values = []
    for name, place, layout in parameters(model):
        values.append(jnp.asarray(weight(name, layout(place).shape)).reshape(place.shape))
    model = eqx.tree_at(lambda tree: [place for _, place, _ in parameters(tree)], model, values)
    trained = jax.tree_util.tree_leaves(eqx.filter(model, eqx.is_inexact_array))
    assert len(trained) == len(values), "a parameter without a name"
    assert all(leaf.dtype == jnp.float64 for leaf in trained)
    return model


def named(model):
    return {name: np.asarray(layout(place)) for name, place, layout in parameters(model)}


def summaries(arrays):
    return {name: summary(array) for name, array in arrays.items()}


def changed(after, before):
    return summaries({name: after[name] - before[name] for name in after})


def batch(number):
    "Values in [-1, 1]."
    bytes_ = images(BATCH, number).transpose(0, 3, 1, 2)
    return {"x": 2 * jnp.asarray((bytes_.astype(np.float32) / np.float32(255)).astype(np.float64)) - 1}


def perturbations(step_key):
    "Signs as 0 and 1, and normal numbers: (perturbations, batch, latents) each."
    sample_keys = jax.random.split(jax.random.split(step_key, 2)[1], BATCH)
    shape, signs, normals = (N_PERTURBATIONS, N_LATENTS), [], []
    for sample_key in sample_keys:
        rademacher_key, normal_key = jax.random.split(sample_key, 2)
        signs.append((jax.random.rademacher(rademacher_key, shape=shape) + 1) // 2)
        normals.append(jax.random.normal(normal_key, shape=shape))
    return [jnp.stack(signs, axis=1).tolist(), jnp.stack(normals, axis=1).tolist()]


def outputs_of(model, outs):
    arrays = {name: outs[name] for name in ("z_c", "z_q", "z_mu") if name in outs} | outs["decoder"]
    return summaries(arrays)


def case(make, draw):
    "Outputs, terms, gradient and some steps of a model."
    with jax.experimental.disable_x64():
        model = make()
    model = given_weights(model)
    start, draws = named(model), []
    optimizer, state = model.construct_optimizer(OmegaConf.create({"optim": OPTIMIZER}))
    found = {"shapes": {name: list(array.shape) for name, array in start.items()}}
    loss = eqx.filter_jit(eqx.filter_value_and_grad(lambda m, data, k: m.batched_loss(m, data, key=k), has_aux=True))
    for number in range(STEPS):
        step_key = key(100 + number)
        draws.append(draw(step_key))
        (value, outs), gradient = loss(model, batch(number), step_key)
        if number == 0:
            terms = {name: float(jnp.mean(term)) for name, term in outs["log"].items()}
            found |= {"outputs": outputs_of(model, outs), "terms": terms, "loss": float(value)}
            found["gradient"] = summaries(named(gradient))
        model, state = theirs.utils.optax_step(optimizer, model, gradient, state)
        if number == 0:
            found["one_step"] = changed(named(model), start)
    return found | {"steps": changed(named(model), start), "draws": draws}


NETWORKS = {"encoder": narrow_encoder, "decoder": narrow_decoder, "latent_size": N_LATENTS, "key": key(0)}
REST = {"reconstruction_loss_fn": "binary_cross_entropy", "regularized_attributes": ["encoder", "decoder"]}


def tripod(multiinformation, hessian, vanilla=0.0):
    lambdas = {
        "reconstruct": 1.0,
        "latent_multiinformation": multiinformation,
        "hessian_penalty": vanilla,
        "hessian_penalty_normalized": hessian,
    }
    return theirs.models.Autoencoder(
        **NETWORKS,
        **REST,
        lambdas=lambdas,
        hessian_regularization_on=LAYERS,
        num_perturbations=N_PERTURBATIONS,
        epsilon=EPSILON,
        quantize_latents=True,
        num_quantized_values=N_VALUES,
    )


def beta_tcvae():
    lambdas = {"reconstruct": 1.0, "total_correlation": 3.0, "mutual_information": 1.0, "dimensionwise_kl": 1.0}
    return theirs.models.TCVAE(**NETWORKS, **REST, lambdas=lambdas, dataset_size=DATASET_SIZE)


def noise(step_key):
    return jax.random.normal(step_key, (BATCH, N_LATENTS)).tolist()


def pieces():
    "Quantiser and multi-information on latents of their own."
    latents = jnp.asarray(stream("pieces").standard_normal((40, N_LATENTS)) * [0.1, 1.0, 2.0, 4.0])
    made = jax.vmap(theirs.nn.Quantizer(N_LATENTS, N_VALUES))(latents)
    z, scales = made["z_q"], jnp.std(made["z_c"], axis=0) + 1e-6
    n, nz = z.shape
    squared = ((4 / (nz + 2)) ** (1 / (nz + 4)) * n ** (-1 / (nz + 4))) ** 2
    information = theirs.models.Autoencoder.latent_multiinformation(z, jnp.diag(scales**2 * squared), scales)
    return summaries(made) | {"multiinformation": float(jnp.mean(information))}


def dci_scores(sources, latents):
    "Forests of a known seed, one for each source; then the released scores of their importances."
    importances, accuracies = [], []
    for source in sources.T:
        np.random.seed(42)  # noqa: NPY002
        importance, accuracy = their_dci.compute_relative_importance_matrix(latents, source[:, None])
        importances.append(importance[:, 0])
        accuracies.append(accuracy)
    matrix = np.stack(importances, axis=1)
    scores = {"d": their_dci.disentanglement(matrix), "c": their_dci.completeness(matrix), "i": np.mean(accuracies)}
    return {name: float(value) for name, value in scores.items()} | {"importance": matrix.tolist()}


def all_scores():
    sources, kinds = representations()
    kinds["quantized"] = 2 * kinds["quantized"]  # values from -1 to 1
    scores = {}
    for name in ("mixed", "aligned", "quantized"):
        np.random.seed(0)  # noqa: NPY002
        infomec = theirs.metrics.compute_infomec(sources, kinds[name], name == "quantized")
        infomec = {score: np.asarray(value).tolist() for score, value in infomec.items()}
        scores[name] = infomec | dci_scores(sources[:600], kinds[name][:600])
    return scores


def psnr():
    pairs = [images(4, number).transpose(0, 3, 1, 2) for number in (7, 8)]
    near = np.clip(pairs[0].astype(int) + stream("near").integers(-9, 10, pairs[0].shape), 0, 255).astype(np.uint8)
    measure = jax.vmap(theirs.metrics.peak_signal_to_noise_ratio)
    return {
        "far": np.asarray(measure(*map(jnp.asarray, pairs))).tolist(),
        "near": np.asarray(measure(jnp.asarray(near), jnp.asarray(pairs[0]))).tolist(),
    }


CASES = {
    "tripod": partial(case, partial(tripod, 0.3, 0.2), perturbations),
    "tripod_no_nhp": partial(case, partial(tripod, 0.3, 0.0), perturbations),
    "vanilla": partial(case, partial(tripod, 0.0, 0.0, 0.1), perturbations),
    "beta_tcvae": partial(case, beta_tcvae, noise),
}

content = read("tripod") if (HERE / "tripod.json").exists() else {"models": {}}
content |= {
    "repository": "https://github.com/kylehkhsu/tripod",
    "commit": subprocess.check_output(["git", "-C", clone, "rev-parse", "HEAD"], text=True).strip(),
    "configuration": {
        "batch": BATCH,
        "n_latents": N_LATENTS,
        "n_values": N_VALUES,
        "n_perturbations": N_PERTURBATIONS,
        "epsilon": EPSILON,
        "width": 0.125,
        "steps": STEPS,
        "dataset_size": DATASET_SIZE,
        "beta": 3.0,
        "multiinformation": 0.3,
        "hessian": 0.2,
        "vanilla": 0.1,
        "beta1": 0.9,
        "beta2": 0.999,
        **OPTIMIZER,
    },
}
for name in sys.argv[2:] or [*CASES, "pieces", "metrics"]:
    if name == "pieces":
        content |= {"pieces": pieces(), "psnr": psnr()}
    elif name == "metrics":
        content["metrics"] = all_scores()
    else:
        content["models"][name] = CASES[name]()
    write("tripod", content)
    jax.clear_caches()
