"""Weights that a trainer sends to a rollout engine on a CPU, as they are and packed for oneDNN."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trellis_testing.engine_changes import changed
from trellis_testing.engine_code import needs_cpu_build, run_engine_code
from trellis_train.compat.vllm_cpu import FIXED_WEIGHTS_VARIABLE
from trellis_train.cpu import packed_weights
from trellis_train.cpu.packed_weights import PackedLinear, counting_deliveries, use_packed_weight
from trellis_train.starter.__main__ import main as make_starter

#: Greedy tokens of the first model, of the second's weights sent to it, and of the second itself.
SEND_WEIGHTS = """
    import json, os, sys
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1")
    from trellis_train.compat import vllm_name
    vllm_name.install()
    from safetensors.torch import load_file
    from trellis_train.cpu.packed_weights import PackedLinear
    from vllm import LLM, SamplingParams

    def sample(llm):
        prompts = [{"prompt_token_ids": list(range(65 + row, 85 + row))} for row in range(3)]
        asked = SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True)
        return [list(answer.outputs[0].token_ids) for answer in llm.generate(prompts, asked, use_tqdm=False)]

    def load(path):
        return LLM(
            path, enforce_eager=True, max_model_len=128, max_num_seqs=4, seed=0, dtype="float32",
            kv_cache_memory_bytes=2**26, enable_prefix_caching=False,
        )

    def count_packed(model):
        layers = [getattr(layer, "cpu_linear", None) for layer in model.modules()]
        return sum(isinstance(layer, PackedLinear) and layer._packed is not None for layer in layers)

    first, second = load(sys.argv[1]), load(sys.argv[2])
    found = {"before": sample(first)}
    weights = load_file(sys.argv[2] + "/model.safetensors")
    for name in weights:  # one after the other, as in buckets
        first.apply_model(lambda model: model.load_weights([(name, weights[name])]))
    found |= {"sent": sample(first), "second": sample(second), "packed": first.apply_model(count_packed)[0]}
    print(json.dumps(found))
"""


@needs_cpu_build
@pytest.mark.training
@pytest.mark.timeout(450)
def test_an_engine_samples_with_the_weights_that_it_was_sent(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        make_starter(["--model", str(tmp_path / seed), "--size", "20m", "--seed", seed])

    found = run_engine_code(SEND_WEIGHTS, str(tmp_path / "1"), str(tmp_path / "2"))

    assert found["sent"] == found["second"]
    assert found["sent"] != found["before"]
    assert found["packed"] == 12  # two of each of six layers


def test_a_small_weight_is_multiplied_by_as_it_is_now() -> None:
    layer = torch.nn.Linear(2, 1, bias=False)
    use_packed_weight(layer)

    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
    product = layer.cpu_linear(torch.ones(1, 2), None, None)

    assert product.item() == 5.0


def test_a_weight_is_packed_once_until_new_ones_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_weights, "_deliveries", packed_weights._Deliveries())
    layer, packed = torch.nn.Linear(2, 1, bias=False), []

    def pack(weight: torch.Tensor) -> Any:
        packed.append(weight.detach().clone())
        return lambda x, bias: torch.nn.functional.linear(x, packed[-1], bias)

    model = load_with_patched_runner(layer)
    live = PackedLinear(layer, pack)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        products = [live(torch.ones(1, 2), None, torch.zeros(1)).item() for _ in range(2)]
        model.load_weights(torch.tensor([[2.0, 3.0]]))
        model.load_weights(torch.tensor([[2.0, 4.0]]))
        products += [live(torch.ones(1, 2), None, torch.ones(1)).item() for _ in range(2)]

    assert products == [2.0, 2.0, 7.0, 7.0]
    assert len(packed) == 2


def test_what_a_delivery_that_failed_has_written_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_weights, "_deliveries", packed_weights._Deliveries())
    model = load_with_patched_runner(torch.nn.Linear(2, 1, bias=False))

    with pytest.raises(RuntimeError):
        model.load_weights(torch.zeros(3, 3))

    assert packed_weights._deliveries.count == 1


@pytest.mark.filterwarnings("ignore")
def test_what_is_compiled_multiplies_by_the_weight_itself() -> None:
    layer = torch.nn.Linear(2, 1, bias=False)
    live = PackedLinear(layer, lambda _: pytest.fail("packed"))

    @torch.compile(backend="eager", fullgraph=True)
    def multiply(x: torch.Tensor) -> torch.Tensor:
        return live(x, None, None)

    with torch.no_grad():
        layer.weight.fill_(1.0)
        assert multiply(torch.ones(1, 2)).item() == 2.0
        layer.weight.fill_(2.0)
        assert multiply(torch.ones(1, 2)).item() == 4.0


@pytest.mark.parametrize("group", ["vllm-cpu", "cpu-packed-weights"])
def test_an_engine_whose_weights_never_change_lays_them_out_itself(
    group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FIXED_WEIGHTS_VARIABLE, "1")
    assert changed("dispatch_cpu_unquantized_gemm", "its own", group) == "its own"

    monkeypatch.delenv(FIXED_WEIGHTS_VARIABLE)
    layer = torch.nn.Linear(2, 1, bias=False)
    changed("dispatch_cpu_unquantized_gemm", "its own", group)(layer, remove_weight=True)
    with torch.no_grad():
        layer.weight.fill_(3.0)
    assert layer.cpu_linear(torch.ones(1, 2), None, None).item() == 6.0


def load_with_patched_runner(layer: torch.nn.Linear) -> Any:
    """A model of ``layer``, as a patched runner of vLLM's loads it."""

    class Model(torch.nn.Module):
        def load_weights(self, weight: torch.Tensor) -> None:
            with torch.no_grad():
                layer.weight.copy_(weight)

    def load_model(runner: Any) -> None:
        runner.model = Model()

    runner = SimpleNamespace()
    counting_deliveries(load_model)(runner)
    return runner.model
