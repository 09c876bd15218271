"""Weights that a trainer sends to a sampler on a CPU, as they are and packed for oneDNN."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trellis_testing.engine_code import needs_cpu_build, run_engine_code
from trellis_train.platform import vllm_weights
from trellis_train.platform.imports import PatchDoesNotFit
from trellis_train.platform.vllm_weights import (
    DISPATCH,
    FIXED_WEIGHTS_VARIABLE,
    LiveLinear,
    keep_weights_live,
    notice_new_weights,
    use_live_weight,
)
from trellis_train.starter.__main__ import main as make_starter

#: Greedy tokens of the first model, of the second's weights sent to it, and of the second itself.
SEND_WEIGHTS = """
    import json, os, sys
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1")
    from trellis_train.platform.patches import distribution_name
    distribution_name.install()
    from safetensors.torch import load_file
    from trellis_train.platform.vllm_weights import LiveLinear
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
        return sum(isinstance(layer, LiveLinear) and layer._packed is not None for layer in layers)

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
    use_live_weight(layer)

    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
    product = layer.cpu_linear(torch.ones(1, 2), None, None)

    assert product.item() == 5.0


def test_a_weight_is_packed_once_until_new_ones_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_weights, "_deliveries", vllm_weights._Deliveries())
    layer, packed = torch.nn.Linear(2, 1, bias=False), []

    def pack(weight: torch.Tensor) -> Any:
        packed.append(weight.detach().clone())
        return lambda x, bias: torch.nn.functional.linear(x, packed[-1], bias)

    model = load_with_patched_runner(layer)
    live = LiveLinear(layer, pack)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        products = [live(torch.ones(1, 2), None, torch.zeros(1)).item() for _ in range(2)]
        model.load_weights(torch.tensor([[2.0, 3.0]]))
        model.load_weights(torch.tensor([[2.0, 4.0]]))
        products += [live(torch.ones(1, 2), None, torch.ones(1)).item() for _ in range(2)]

    assert products == [2.0, 2.0, 7.0, 7.0]
    assert len(packed) == 2


def test_what_a_delivery_that_failed_has_written_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_weights, "_deliveries", vllm_weights._Deliveries())
    model = load_with_patched_runner(torch.nn.Linear(2, 1, bias=False))

    with pytest.raises(RuntimeError):
        model.load_weights(torch.zeros(3, 3))

    assert vllm_weights._deliveries.count == 1


@pytest.mark.filterwarnings("ignore")
def test_what_is_compiled_multiplies_by_the_weight_itself() -> None:
    layer = torch.nn.Linear(2, 1, bias=False)
    live = LiveLinear(layer, lambda _: pytest.fail("packed"))

    @torch.compile(backend="eager", fullgraph=True)
    def multiply(x: torch.Tensor) -> torch.Tensor:
        return live(x, None, None)

    with torch.no_grad():
        layer.weight.fill_(1.0)
        assert multiply(torch.ones(1, 2)).item() == 2.0
        layer.weight.fill_(2.0)
        assert multiply(torch.ones(1, 2)).item() == 4.0


def test_an_engine_whose_weights_never_change_lays_them_out_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = SimpleNamespace(**{DISPATCH: "its own"})

    monkeypatch.setenv(FIXED_WEIGHTS_VARIABLE, "1")
    keep_weights_live(module)
    assert getattr(module, DISPATCH) == "its own"

    monkeypatch.delenv(FIXED_WEIGHTS_VARIABLE)
    keep_weights_live(module)
    assert getattr(module, DISPATCH) is use_live_weight


def test_a_runner_that_loads_otherwise_is_not_patched_in_silence() -> None:
    with pytest.raises(PatchDoesNotFit, match="load_model"):
        notice_new_weights(SimpleNamespace(CPUModelRunner=type("CPUModelRunner", (), {})))  # type: ignore[arg-type]


def load_with_patched_runner(layer: torch.nn.Linear) -> Any:
    """A model of ``layer``, as a patched runner of vLLM's loads it."""

    class Model(torch.nn.Module):
        def load_weights(self, weight: torch.Tensor) -> None:
            with torch.no_grad():
                layer.weight.copy_(weight)

    class CPUModelRunner:
        def load_model(self) -> None:
            self.model = Model()

    notice_new_weights(SimpleNamespace(CPUModelRunner=CPUModelRunner))  # type: ignore[arg-type]
    runner = CPUModelRunner()
    runner.load_model()
    return runner.model
