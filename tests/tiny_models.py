"""GPT-2 and BART as plain NumPy, of any size, with the weights' names of transformers: models for tests of generation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FIXTURES = Path(__file__).parent / "generation_fixtures"
NOTHING = np.float32(-1e30)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalized(x, weight, bias):
    middle = x.mean(-1, keepdims=True)
    return (x - middle) / np.sqrt(((x - middle) ** 2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def attention(query, key, value, allowed, heads):
    """Rows [batch, n, size]; `allowed` is bool[batch, n, m]."""

    def split(x):
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = split(query), split(key), split(value)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(np.float32(q.shape[-1]))
    scores = np.where(allowed[:, None], scores, NOTHING)
    return (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(query.shape)


class Weights:
    """Arrays by name."""

    def __init__(self, name):
        with np.load(FIXTURES / f"{name}.npz") as file:
            self.arrays = {key: file[key].astype(np.float32) for key in file.files}
        self.heads = int(self.arrays.pop("heads"))

    def __getitem__(self, name):
        return self.arrays[name]

    def layers(self, prefix):
        return 1 + max(int(name[len(prefix) :].split(".")[0]) for name in self.arrays if name.startswith(prefix))

    def norm(self, x, name):
        return normalized(x, self[f"{name}.weight"], self[f"{name}.bias"])

    def conv(self, x, name):
        return x @ self[f"{name}.weight"] + self[f"{name}.bias"]

    def linear(self, x, name):
        return x @ self[f"{name}.weight"].T + self[f"{name}.bias"]


class TinyGPT2:
    """A step function; the state is all ids so far and their mask."""

    def __init__(self):
        self.weights = Weights("gpt2")

    def logits(self, ids, mask):
        w = self.weights
        positions = np.where(mask, np.cumsum(mask, 1) - 1, 0)
        x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][positions]
        n = ids.shape[1]
        allowed = np.tri(n, dtype=bool)[None] & mask[:, None, :] | np.eye(n, dtype=bool)[None]
        for layer in range(w.layers("transformer.h.")):
            name = f"transformer.h.{layer}"
            q, k, v = np.split(w.conv(w.norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn"), 3, -1)
            x = x + w.conv(attention(q, k, v, allowed, w.heads), f"{name}.attn.c_proj")
            y = w.conv(w.norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc")
            y = 0.5 * y * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (y + np.float32(0.044715) * y**3)))
            x = x + w.conv(y, f"{name}.mlp.c_proj")
        return w.norm(x, "transformer.ln_f")[:, -1] @ w["transformer.wte.weight"].T

    def __call__(self, ids, state, beam_index):
        if beam_index is None:
            all_ids, mask = ids, state
        else:
            all_ids = np.concatenate([state[0][beam_index], ids], 1)
            mask = np.pad(state[1][beam_index], ((0, 0), (0, 1)), constant_values=True)
        return self.logits(all_ids, mask), (all_ids, mask)


class TinyBART:
    """A step function for the decoder; the state is the encoder's output, its mask, and all ids so far."""

    def __init__(self):
        self.weights = Weights("bart")

    def _attend(self, x, name, source, allowed):
        w = self.weights
        q, k, v = (w.linear(y, f"{name}.{part}_proj") for y, part in ((x, "q"), (source, "k"), (source, "v")))
        return w.norm(
            x + w.linear(attention(q, k, v, allowed, w.heads), f"{name}.out_proj"), f"{name}_layer_norm"
        )

    def _embed(self, ids, part):
        w = self.weights
        x = w["model.shared.weight"][ids] + w[f"model.{part}.embed_positions.weight"][2 : 2 + ids.shape[1]]
        return w.norm(x, f"model.{part}.layernorm_embedding")

    def _feed(self, x, name):
        w = self.weights
        y = w.linear(np.maximum(w.linear(x, f"{name}.fc1"), 0), f"{name}.fc2")
        return w.norm(x + y, f"{name}.final_layer_norm")

    def encode(self, ids, mask):
        x = self._embed(ids, "encoder")
        allowed = np.broadcast_to(mask[:, None, :], (*mask.shape, mask.shape[1]))
        for layer in range(self.weights.layers("model.encoder.layers.")):
            name = f"model.encoder.layers.{layer}"
            x = self._feed(self._attend(x, f"{name}.self_attn", x, allowed), name)
        return x, mask

    def __call__(self, ids, state, beam_index):
        if beam_index is None:
            (encoded, mask), all_ids = state, ids
        else:
            encoded, mask, all_ids = (array[beam_index] for array in state)
            all_ids = np.concatenate([all_ids, ids], 1)
        n = all_ids.shape[1]
        own = np.broadcast_to(np.tri(n, dtype=bool), (len(ids), n, n))
        other = np.broadcast_to(mask[:, None, :], (len(ids), n, mask.shape[1]))
        x = self._embed(all_ids, "decoder")
        for layer in range(self.weights.layers("model.decoder.layers.")):
            name = f"model.decoder.layers.{layer}"
            x = self._attend(x, f"{name}.self_attn", x, own)
            x = self._feed(self._attend(x, f"{name}.encoder_attn", encoded, other), name)
        return x[:, -1] @ self.weights["model.shared.weight"].T, (encoded, mask, all_ids)
