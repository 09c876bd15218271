"""Attention heads that find where something stood before: a small model can then copy what it reads.

An agent copies all day, a name from the question into a statement and handles from rows into its answer.
Induction heads do that (Olsson et al. 2022, arXiv 2209.11895): a head of the first layer writes down which
token stood before, and one of the second looks for the place behind that token and copies what stands there.
Gradients find them only after long training, so a starter begins with them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Of the branches of a layer, beside what passes through it.
BRANCH_SCALE = 0.1
#: How sharply a head looks back, and how sharply one compares.
_BACK, _ALIKE = 6.0, 2.0
#: What a copying head adds to the stream, in parts of what it reads.
_COPIED = 0.2
#: The heads of the first layer, by how many tokens they look back.
_LOOKING_BACK = (1, 2)


def add_induction_heads(model: Any) -> None:
    """Set weights of the first two layers of a Qwen2 with as many key-value heads as heads.

    In the second layer, the first head asks "what stood behind this token?", the second "what stood two
    behind the token before this one?", which leads through lists whose separators differ.
    """
    import torch

    config = model.config
    if config.num_key_value_heads != config.num_attention_heads or config.num_hidden_layers < 2:
        raise ValueError("induction heads need two layers and a key-value head for each head")
    size = config.hidden_size // config.num_attention_heads
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.mul_(BRANCH_SCALE)
            layer.mlp.down_proj.weight.mul_(BRANCH_SCALE)
        first, second = (layer.self_attn for layer in model.model.layers[:2])
        read, *written = _orthonormal(config.hidden_size, size, 1 + len(_LOOKING_BACK))
        theta = config.rope_parameters["rope_theta"]
        for number, (back, place) in enumerate(zip(_LOOKING_BACK, written, strict=True)):
            _look_back(first, slice(number * size, (number + 1) * size), back, theta)
            _move(first, slice(number * size, (number + 1) * size), read, place * BRANCH_SCALE)
        one_back, two_back = written
        for number, (asks, answers) in enumerate(((read, one_back), (one_back, two_back))):
            head = slice(number * size, (number + 1) * size)
            second.q_proj.weight[head] = _ALIKE * asks.T
            second.k_proj.weight[head] = _ALIKE * answers.T
            (copied,) = _orthonormal(config.hidden_size, size, 1)
            _move(second, head, copied, copied * _COPIED)


def _look_back(attention: Any, head: slice, back: int, theta: float) -> None:
    """Let a head attend to the place so far before its own, whatever stands there."""
    import torch

    size = head.stop - head.start
    attention.q_proj.weight[head] *= BRANCH_SCALE
    attention.k_proj.weight[head] *= BRANCH_SCALE
    bias = torch.full((size,), _BACK)
    attention.q_proj.bias[head] = bias
    # Turned by as many places as the rotation of the positions will turn it back.
    half = size // 2
    angles = back / theta ** (torch.arange(half) / half)
    turned = torch.cat([-bias[half:], bias[:half]])
    attention.k_proj.bias[head] = bias * angles.cos().repeat(2) + turned * angles.sin().repeat(2)


def _move(attention: Any, head: slice, source: "torch.Tensor", target: "torch.Tensor") -> None:
    """Let a head carry what stands in one subspace of the stream into another."""
    attention.v_proj.weight[head] = source.T
    attention.o_proj.weight[:, head] = target


def _orthonormal(width: int, size: int, count: int) -> "list[torch.Tensor]":
    """Draw ``count`` random subspaces that are orthogonal to each other, as orthonormal bases."""
    import torch

    if size * count > width:
        raise ValueError(f"{count} subspaces of {size} do not fit into {width}")
    basis, _ = torch.linalg.qr(torch.randn(width, size * count))
    return list(basis.split(size, dim=1))
