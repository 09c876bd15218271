"""Archives that strangers send are unpacked within bounds, or refused with a sentence."""

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from trellis_recipes.workflows import package
from trellis_recipes.workflows.archive import unpack
from trellis_recipes.workflows.package import BadPackage, read_package, read_requirements
from trellis_recipes.workflows.packing import pack
from trellis_recipes.workflows.source import NoWorkflow, find_function, needs_auxiliary

CODE = "async def workflow(task, model):\n    return 1.0\n"


def make_tar(path: Path, files: dict[str, bytes], *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for member in members:
            archive.addfile(member)
    return path


def make_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def make_link(kind: bytes, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize("make", [make_tar, make_zip])
def test_a_single_folder_at_the_top_and_caches_are_left_out(make: object, tmp_path: Path) -> None:
    files = {
        "agent/workflow.py": CODE.encode(),
        "agent/lib/a.py": b"x = 1\n",
        "agent/__pycache__/a.pyc": b"-",
        "agent/.git/config": b"-",
    }
    archive = make(tmp_path / "archive", files)  # type: ignore[operator]

    unpack(archive, tmp_path / "out")

    found = read_package(tmp_path / "out")
    assert (found.function, found.code) == ("workflow", CODE)
    assert found.files == {"lib/a.py": 6, "workflow.py": len(CODE)}
    assert found.size_bytes == 6 + len(CODE)


@pytest.mark.parametrize("name", ["../out.py", "/etc/x.py", "a/../../x.py", "..\\x.py", "C:/x.py", "x" * 300])
def test_paths_that_leave_the_package_are_refused_and_nothing_stays(name: str, tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "archive.tgz", {"workflow.py": CODE.encode(), name: b"x"})
    with pytest.raises(BadPackage, match="no path within the package"):
        unpack(archive, tmp_path / "in" / "out")
    assert not (tmp_path / "in" / "out").exists()
    assert not (tmp_path / "in" / "out.py").exists()


@pytest.mark.parametrize(
    ("kind", "target"),
    [(tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "workflow.py"), (tarfile.FIFOTYPE, "")],
)
def test_links_and_devices_are_refused(kind: bytes, target: str, tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tgz", {"workflow.py": CODE.encode()}, make_link(kind, target))
    with pytest.raises(BadPackage, match="'link' is a link or no plain file"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        member = zipfile.ZipInfo("link")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(BadPackage, match="link"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_bytes_are_counted_as_they_come_and_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "MAX_BYTES", 1000)
    bomb = make_zip(tmp_path / "bomb.zip", {"workflow.py": CODE.encode(), "zeros": bytes(10_000)})
    with pytest.raises(BadPackage, match="larger than"):
        unpack(bomb, tmp_path / "out")
    hidden = make_tar(tmp_path / "hidden.tgz", {"workflow.py": b"", ".git/zeros": bytes(10_000)})
    with pytest.raises(BadPackage, match="larger than"):
        unpack(hidden, tmp_path / "out")
    monkeypatch.setattr(package, "MAX_FILES", 3)
    many = make_tar(tmp_path / "many.tgz", {f"{i}.py": b"" for i in range(4)})
    with pytest.raises(BadPackage, match="more than 3 files"):
        unpack(many, tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"no archive at all", b"\x1f\x8b\x08broken"])
def test_what_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BadPackage, match=r"neither a zip nor a tar|cannot be read"):
        unpack(tmp_path / "file", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_all_faults_of_a_package_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "workflow.py").write_text("def workflow(task, model): ...\n")
    (tmp_path / "requirements.txt").write_text("numpy\n--index-url http://x\n")
    with pytest.raises(BadPackage) as refused:
        read_package(tmp_path)
    assert len(refused.value.faults) == 2
    assert "must be async" in refused.value.faults[0]
    assert "requirements.txt, line 2: '--index-url http://x'" in refused.value.faults[1]
    (tmp_path / "workflow.py").unlink()
    with pytest.raises(BadPackage, match=r"no workflow.py at the top level"):
        read_package(tmp_path)


def test_plain_requirements_are_taken_and_all_else_is_refused() -> None:
    taken = [
        "numpy",
        "langgraph==1.2.3",
        "langchain-openai >=1.0, <2",
        "uvicorn[standard]~=0.30",
        'tomli ; python_version < "3.11"',
        'jaxlib; python_version < "3.13" and (sys_platform == "linux" or extra == "cpu")',
        "x.y_z!=1.*",
    ]
    text = "# what it needs\n" + "\n".join(f"{line}  # why" for line in taken) + "\n\n"
    assert read_requirements(text) == taken
    for line in (
        "-e .",
        "--extra-index-url=http://x",
        "name @ http://x/y.whl",
        "git+https://x/y",
        "./local",
        "http://x/y.whl",
        "a b",
        "-r other.txt",
        "numpy; x @ y",
        # pip would read options and variables of a file, wherever they stand.
        'evil; python_version>"3" --no-binary=:all:',
        'foo; python_version > "${PIP_INDEX_URL}"',
        'foo; python_version > "3" \\',
    ):
        with pytest.raises(BadPackage, match="line 1"):
            read_requirements(line)


def test_a_folder_is_packed_to_the_same_bytes_and_unpacks_to_the_same_hash(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "x.pyc").write_bytes(b"-")
    (folder / "workflow.py").write_text(CODE)
    (folder / "data.json").write_text("[]")
    archive = pack(folder, tmp_path / "agent.tar.gz")

    unpack(archive, tmp_path / "out")

    assert read_package(tmp_path / "out") == read_package(folder)
    (folder / "data.json").write_text("[1]")
    assert read_package(tmp_path / "out").sha256 != read_package(folder).sha256


def test_a_link_in_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "workflow.py").write_text(CODE)
    (tmp_path / "secret").symlink_to("/etc/passwd")
    with pytest.raises(BadPackage, match="'secret' is a link"):
        read_package(tmp_path)


def test_the_third_parameter_is_for_other_models() -> None:
    with_models = "async def workflow(task, model, auxiliary_models): ..."
    optional = "async def workflow(task, model, auxiliary_models=None): ..."
    judged = f"{CODE}async def judge(task, response, auxiliary_models): ..."
    assert [find_function(code) for code in (with_models, optional, judged)] == ["workflow"] * 3
    assert [needs_auxiliary(code, "workflow") for code in (with_models, optional, judged, CODE)] == [
        True,
        False,
        True,
        False,
    ]
    with pytest.raises(NoWorkflow, match="with these names in order"):
        find_function("async def workflow(task, model, others): ...")


def test_a_tar_whose_header_would_fill_memory_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 200 * package.MIB
    path = tmp_path / "a.tar"
    with path.open("wb") as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        file.truncate(header.size + 2048)

    with pytest.raises(BadPackage, match="header of the archive is too large"):
        unpack(path, tmp_path / "out")


def test_a_zip_that_lists_too_many_files_is_refused_before_they_are_read(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {f"{number:0200}": b"" for number in range(9000)})

    with pytest.raises(BadPackage, match="lists too many files"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("form", ["zip", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_with_a_damaged_stream_is_refused_and_nothing_stays(form: str, tmp_path: Path) -> None:
    content = os.urandom(100_000).hex().encode()
    archive = tmp_path / "archive"
    if form == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
            opened.writestr("workflow.py", content)
    else:
        with tarfile.open(archive, form) as opened_tar:
            member = tarfile.TarInfo("workflow.py")
            member.size = len(content)
            opened_tar.addfile(member, io.BytesIO(content))
    damaged = bytearray(archive.read_bytes())
    # Behind a zip's header and the name, where the first block says how it is packed; else in the middle.
    begin = 41 if form == "zip" else 30_000
    damaged[begin:50_000] = b"\xff" * (50_000 - begin)
    archive.write_bytes(damaged)

    with pytest.raises(BadPackage, match=r"cannot be read|neither a zip nor a tar"):
        unpack(archive, tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()
