"""What the cluster is told: everything on this machine alone, and no address that carries a password."""

import stat
from pathlib import Path

import pytest
from trellis_cli.services.layout import settle_ray_ports
from trellis_cli.services.platform import Platform, load_platform
from trellis_cli.services.ray import RayService
from trellis_cli.services.redis import RedisService
from trellis_contracts.recipe import Engine
from trellis_recipes.placement import entrypoint_demand, total_demand


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Platform:
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path / "data"))
    platform = load_platform()
    platform.layout.prepare()
    settle_ray_ports(platform.state)
    return platform


def test_the_cluster_is_not_told_where_database_and_broker_are(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_DATABASE_URL", "postgresql://trellis:secret@db/trellis")
    monkeypatch.setenv("TRELLIS_TOKEN", "secret")

    env = RayService(platform).platform.environment("ray")

    assert "TRELLIS_DATABASE_URL" not in env
    assert "TRELLIS_REDIS_URL" not in env
    assert not any("secret" in value for value in env.values())


def test_the_cluster_has_no_keys_that_workers_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    judge = '{"strict": {"base_url": "https://judge.test/v1", "model": "m", "key_variable": "STRICT"}}'
    keys = ("STRICT", "EMBEDDING_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path))
    monkeypatch.setenv("TRELLIS_JUDGES", judge)
    for name in keys:
        monkeypatch.setenv(name, "secret")

    env = load_platform().environment("ray")

    assert not {*keys, "TRELLIS_JUDGES"} & env.keys()
    assert set(keys) <= load_platform().environment("worker").keys()


def test_the_cluster_has_a_token_of_its_own(platform: Platform) -> None:
    service = RayService(platform)

    service.prepare()

    env = platform.environment("ray")
    path = Path(env["RAY_AUTH_TOKEN_PATH"])
    assert env["RAY_AUTH_MODE"] == "token"
    assert path.is_relative_to(platform.settings.data_root)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text()) >= 32


def test_links_in_the_places_of_passwords_and_tokens_lead_none_of_them_elsewhere(
    platform: Platform, tmp_path: Path
) -> None:
    layout, elsewhere = platform.layout, tmp_path / "elsewhere"
    planted = [layout.state_path, layout.state_path.with_suffix(".tmp")]
    planted += [layout.data_root / "redis" / "redis.conf", layout.ray_token_path]
    for path in planted:
        path.symlink_to(elsewhere)

    layout.write_state(platform.state)
    RedisService(platform).prepare()
    with pytest.raises(FileNotFoundError):
        layout.ray_token()

    assert not elsewhere.exists()
    assert platform.state.redis_password in layout.state_path.read_text()


def test_jobs_report_to_the_address_that_the_api_listens_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path))
    monkeypatch.setenv("TRELLIS_HOST", "192.0.2.7")

    one_address = load_platform(8123).environment("worker")["TRELLIS_PUBLIC_URL"]
    monkeypatch.setenv("TRELLIS_HOST", "0.0.0.0")
    all_addresses = load_platform(8123).environment("worker")["TRELLIS_PUBLIC_URL"]
    monkeypatch.setenv("TRELLIS_PUBLIC_URL", "https://trellis.example")
    behind_a_proxy = load_platform(8123).environment("worker")["TRELLIS_PUBLIC_URL"]

    assert one_address == "http://192.0.2.7:8123"
    assert all_addresses == "http://127.0.0.1:8123"
    assert behind_a_proxy == "https://trellis.example"


def test_every_port_of_the_head_is_ours_and_different(platform: Platform) -> None:
    command = RayService(platform).command()

    ports = [int(option.partition("=")[2]) for option in command if "port=" in option]

    assert len(ports) == 8
    assert len(set(ports)) == len(ports)
    assert "--node-ip-address=127.0.0.1" in command


@pytest.mark.parametrize("slots", [1, 2, 4, 8])
def test_the_head_has_cpus_for_all_jobs_that_may_run_together(
    slots: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path / "data"))
    monkeypatch.setenv("TRELLIS_SLOTS", str(slots))
    monkeypatch.setenv("TRELLIS_MAX_EXPORTS", "2")
    platform = load_platform()
    platform.layout.prepare()
    settle_ray_ports(platform.state)

    options = dict(option.lstrip("-").partition("=")[::2] for option in RayService(platform).command())

    beside = 2 * entrypoint_demand(Engine.EXPORT, 0).cpus + entrypoint_demand(Engine.EVALUATE, 0).cpus
    one_large = total_demand(Engine.VERL_PPO, slots).cpus + beside
    many_small = slots * total_demand(Engine.VERL_PPO, 1).cpus + beside
    assert int(options["num-gpus"]) == slots
    assert int(options["num-cpus"]) >= max(one_large, many_small)


def test_sockets_stay_within_the_kernels_limit_however_long_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path / ("a long name " * 12).strip()))
    platform = load_platform()
    platform.layout.prepare()

    folder = platform.layout.ray_temp_dir()

    assert len(str(folder)) + 70 <= 107
    assert " " not in str(folder)
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert (platform.settings.data_root / "ray" / "head").resolve() == folder
    folder.rmdir()
    folder.parent.rmdir()


def test_temporary_files_of_the_head_and_its_jobs_go_with_it(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    service = RayService(platform)
    service.prepare()
    env = service.environment()
    left = Path(env["TMPDIR"], "pymp-killed", "listener")
    left.parent.mkdir()
    left.touch()

    service.end()

    assert Path(env["TMPDIR"]).is_relative_to((platform.settings.data_root / "ray" / "head").resolve())
    assert not left.exists()
    # What PyTorch compiles outlives the head.
    assert not Path(env["TORCHINDUCTOR_CACHE_DIR"]).is_relative_to(env["TMPDIR"])
    # The longest name of a socket below it: of multiprocessing, in the folder of a run.
    assert len(f"{env['TMPDIR']}/trellis-run-12345678/pymp-12345678/listener-12345678") <= 107
