"""How a checkpoint on disk is announced."""

from pathlib import Path

from trellis_train.hooks.checkpoints import describe_checkpoint


def write(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_the_size_counts_every_file(tmp_path: Path) -> None:
    write(tmp_path / "actor" / "model_world_size_1_rank_0.pt", 100)
    write(tmp_path / "data.pt", 11)

    event = describe_checkpoint(tmp_path, step=4)

    assert (event.step, event.size_bytes, event.path) == (4, 111, str(tmp_path))


def test_a_folder_with_config_and_tokenizer_only_is_no_model(tmp_path: Path) -> None:
    write(tmp_path / "actor" / "huggingface" / "config.json", 10)

    assert describe_checkpoint(tmp_path, step=1).hf_path is None


def test_weights_in_hugging_face_format_are_pointed_at(tmp_path: Path) -> None:
    write(tmp_path / "actor" / "huggingface" / "model.safetensors", 10)

    assert describe_checkpoint(tmp_path, step=1).hf_path == str(tmp_path / "actor" / "huggingface")


def test_a_supervised_checkpoint_has_its_folder_one_level_higher(tmp_path: Path) -> None:
    write(tmp_path / "huggingface" / "model-00001-of-00002.safetensors", 10)

    assert describe_checkpoint(tmp_path, step=1).hf_path == str(tmp_path / "huggingface")
