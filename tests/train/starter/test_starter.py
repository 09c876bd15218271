"""The starter model and its data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from trellis_data.samples.addition import HEDGE, make_sets, write_sets
from trellis_train.starter.__main__ import main


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_sets_share_no_prompt() -> None:
    sets = make_sets(0)
    taught, practised, measured = (
        {problem.prompt for problem in problems} for problems in (sets.sft, sets.rl_train, sets.rl_validation)
    )

    assert not taught & practised
    assert not (taught | practised) & measured
    assert (len(taught), len(practised), len(measured)) == (250, 250, 100)


def test_every_answer_is_right_but_half_of_the_lessons_hedge() -> None:
    sets = make_sets(3)
    answers = [problem.answer for problem in sets.sft]

    assert sum(answer.startswith(HEDGE) for answer in answers) == len(answers) / 2
    assert not any(problem.answer.startswith(HEDGE) for problem in sets.rl_train)
    for problem in (*sets.sft, *sets.rl_train, *sets.rl_validation):
        digits = [int(character) for character in problem.prompt if character.isdigit()]
        assert sum(digits) == int(problem.answer.removeprefix(HEDGE))


def test_the_same_seed_gives_the_same_data(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write_sets(tmp_path / name, seed)

    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert files_of(tmp_path / "a") != files_of(tmp_path / "c")


def test_data_alone_needs_no_torch(tmp_path: Path) -> None:
    program = (
        "import sys; from trellis_train.starter.__main__ import main;"
        f"main(['--data', {str(tmp_path)!r}]); print('torch' in sys.modules)"
    )

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    written, has_torch = finished.stdout.splitlines()
    preferences = {
        f"{kind}_{part}" for kind in ("preference", "unpaired") for part in ("train", "validation")
    }
    assert set(json.loads(written)) == {"sft", "rl_train", "rl_validation", *preferences}
    assert has_torch == "False"


def test_nothing_to_make_is_an_error(capsys) -> None:
    with pytest.raises(SystemExit):
        main([])

    assert "--model" in capsys.readouterr().err


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    main(["--model", str(folder / "a"), "--seed", "1"])
    main(["--model", str(folder / "b"), "--seed", "1"])
    main(["--model", str(folder / "c"), "--seed", "2"])
    return folder


def test_the_same_seed_gives_the_same_bytes(folder: Path) -> None:
    assert files_of(folder / "a") == files_of(folder / "b")
    assert files_of(folder / "a")["model.safetensors"] != files_of(folder / "c")["model.safetensors"]


def test_it_has_less_than_a_million_parameters(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder / "a")

    assert 700_000 < model.num_parameters() < 1_000_000
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


def test_its_tokenizer_reads_any_text_byte_by_byte(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "a")
    text = "3 + 4 = ?\n加法 \t  two  spaces"

    tokens = tokenizer(text)["input_ids"]

    assert len(tokenizer) == 259
    assert len(tokens) == len(text.encode())
    assert tokenizer.decode(tokens) == text
    assert len(tokenizer("\n")["input_ids"]) == 1


def test_its_chat_template_marks_turns(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "a")

    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "3+4="}], tokenize=False, add_generation_prompt=True
    )

    assert text == "<|im_start|>user\n3+4=<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])[0] == "<|im_start|>"
    assert tokenizer.eos_token == "<|im_end|>"
