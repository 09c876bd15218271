"""What the engine prints becomes lines: whole, readable, without secrets."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_contracts.spool import SpoolReader
from trellis_train.hooks.event_spool import Spool
from trellis_train.supervise.output import MAX_LINE_CHARS, LineAssembler, OutputPump
from trellis_train.supervise.redaction import Redactor


def assemble(*chunks: bytes, mask: Any = str) -> list[str]:
    assembler = LineAssembler(mask)
    lines = [line for chunk in chunks for line in assembler.feed(chunk, 0.0)]
    return lines + assembler.flush(0.0, is_final=True)


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        pytest.param([b"one\ntwo\n"], ["one", "two"], id="whole lines"),
        pytest.param([b"on", b"e\nt", b"wo"], ["one", "two"], id="a line in pieces"),
        pytest.param([b"one\r\ntwo\r", b"\n"], ["one", "two"], id="windows line ends"),
        pytest.param([b" 1%\r 50%\r100%\n"], ["100%"], id="a progress bar becomes its last state"),
        pytest.param([b" 1%", b"\r 50%", b"\r100%", b"\ndone\n"], ["100%", "done"], id="a bar in pieces"),
        pytest.param([b"\x1b[31mred\x1b[0m \x1b]0;title\x07x\n"], ["red x"], id="terminal codes"),
        pytest.param(
            ["学习率".encode()[:4], "学习率".encode()[4:] + b"\n"], ["学习率"], id="a character in pieces"
        ),
        pytest.param([b"\xff\xfe\n"], ["��"], id="bytes that are no text"),
        pytest.param([b"\n\n"], ["", ""], id="empty lines are kept"),
    ],
)
def test_lines_are_assembled(chunks: list[bytes], lines: list[str]) -> None:
    assert assemble(*chunks) == lines


@given(
    st.lists(st.text(st.characters(blacklist_categories=["Cc", "Cs"]), max_size=20), max_size=8),
    st.data(),
)
def test_lines_do_not_depend_on_where_the_pipe_cuts_them(lines: list[str], data: st.DataObject) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))

    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    assert assemble(*chunks) == lines


def test_a_very_long_line_is_cut_with_a_mark() -> None:
    (line,) = assemble(*[b"x" * 1_000] * 50, b"\n")

    assert line == "x" * MAX_LINE_CHARS + f" … [{50_000 - MAX_LINE_CHARS} more characters cut]"


def test_a_secret_is_masked_even_where_the_line_is_cut() -> None:
    secret = "s3cret-value-0123456789"
    redactor = Redactor({"WANDB_API_KEY": secret})

    (line,) = assemble(b"x" * (MAX_LINE_CHARS - 5) + secret.encode() + b"\n", mask=redactor.mask)

    assert secret[:5] not in line


@pytest.mark.parametrize(
    "text",
    [
        "token is hunter2-hunter2",
        "using hf_abcdefghijklmnopqrstuvwx",
        "Authorization: Bearer abcdefghijklmnop",
        "postgresql://user:pass@host/db",
        "redis://:hunter2@host:6379/0",
        "token trellis_job_abcdefghijklmnopqrstuvwxyz",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    masked = Redactor({"HF_TOKEN": "hunter2-hunter2"}).mask(text)

    assert "***" in masked
    for secret in ("hunter2", "hf_abc", "abcdefgh", "user:pass"):
        assert secret not in masked


@pytest.mark.parametrize(
    "variable", [("TOKENIZERS_PARALLELISM", "false-false"), ("RAY_AUTH_TOKEN_PATH", "/data/ray/token")]
)
def test_ordinary_variables_are_not_masked(variable: tuple[str, str]) -> None:
    name, value = variable

    assert Redactor({name: value}).mask(f"{name}={value}") == f"{name}={value}"


def read_lines(folder: Path) -> list[tuple[str, str]]:
    batch = SpoolReader(folder).next_batch()
    return [(event.stream, line) for event in (batch.events if batch else []) for line in event.lines]


def run_pump(folder: Path, text: bytes, **options: Any) -> OutputPump:
    read_end, write_end = os.pipe()
    pump = OutputPump({"stdout": read_end}, Spool(folder, "entrypoint"), Redactor({}), **options)
    pump.start()
    os.write(write_end, text)
    os.close(write_end)
    pump.join(5)
    os.close(read_end)
    return pump


def test_lines_are_written_in_few_events(tmp_path: Path) -> None:
    run_pump(tmp_path, b"".join(b"line %d\n" % n for n in range(2_000)))

    batch = SpoolReader(tmp_path).next_batch()

    assert [line for _, line in read_lines(tmp_path)] == [f"line {n}" for n in range(2_000)]
    assert batch is not None
    assert len(batch.events) <= 10


def test_lines_are_dropped_and_counted_while_too_much_waits(tmp_path: Path) -> None:
    fullness = iter([True, True])

    run_pump(tmp_path, b"one\ntwo\n", is_full=lambda: next(fullness, False))

    assert read_lines(tmp_path) == [("platform", "2 log lines were dropped: the upload queue is full.")]


def test_a_bar_that_stands_still_is_shown_after_a_while() -> None:
    assembler = LineAssembler()
    assembler.feed(b"Loading shards:  50%", time.monotonic())

    too_early = assembler.flush(time.monotonic())
    later = assembler.flush(time.monotonic() + 3)

    assert (too_early, later) == ([], ["Loading shards:  50%"])
