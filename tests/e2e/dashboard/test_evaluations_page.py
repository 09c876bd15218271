"""Evaluations by a person's hand: started, followed, read, and looked into sample by sample."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from trellis_api.benchmarks import service as benchmarks
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_testing.measured_models import TYPES, answer_problems, finish_evaluation, install_benchmark
from trellis_testing.model_folders import write_model_folder
from trellis_testing.pages import choose_from_select
from trellis_testing.reporting_jobs import ReportingJob, now

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PROBLEMS = 120
#: A key of the dictionary in place of its text.
KEY_NAME = re.compile(r"\b(action|evaluations|field|jobs|models|value)(\.[a-z]\w*)+\b")


@dataclass(frozen=True)
class Platform:
    """A platform with two models, each measured on two benchmarks."""

    url: str
    settings: Settings
    database: Database
    models: dict[str, str]
    evaluations: dict[str, str]


def order(benchmark: str, **more: Any) -> dict[str, Any]:
    return {"benchmark": benchmark, "limit": PROBLEMS, **more}


@pytest.fixture(scope="module")
def platform(dashboard, api) -> Iterator[Platform]:  # type: ignore[no-untyped-def]
    """Everything is asked for over the API; what a run would leave is written down."""
    settings = Settings(data_root=dashboard.data_root)
    database = Database(settings)
    models = {}
    for name in ("seedling", "sapling"):
        write_model_folder(dashboard.data_root / "models" / name)
        source = {"kind": "local", "path": f"models/{name}"}
        models[name] = api.request("POST", "/models", json={"name": name, "source": source})["id"]
    install_benchmark(database, "gsm8k", {})
    levels = {f"Level {level}": 100 for level in range(1, 6)}
    install_benchmark(database, "math500", {"level": levels, "type": dict.fromkeys(TYPES, 100)})
    evaluations = {}
    for number, (name, model) in enumerate(models.items()):
        body = {
            "targets": [{"kind": "model", "model": model}],
            "benchmarks": [order("gsm8k"), order("math500")],
        }
        made = api.request("POST", "/evaluations", json=body)["items"][0]
        samples = {
            label: answer_problems(label, PROBLEMS, 0.4 + 0.3 * number, seed=number)
            for label in ("gsm8k", "math500")
        }
        finish_evaluation(settings, database, made["id"], samples)
        evaluations[name] = made["id"]
    yield Platform(dashboard.url, settings, database, models, evaluations)
    for one in api.request("GET", "/evaluations?limit=200")["items"]:
        if one["can_delete"]:
            api.delete(f"/evaluations/{one['id']}")
    for model in models.values():
        api.delete(f"/models/{model}")
    database.dispose()


def open_evaluation(page: Page, platform: Platform, name: str, query: str = "") -> Locator:
    """The panel of the open tab."""
    page.goto(f"{platform.url}/evaluations/{platform.evaluations[name]}{query}")
    panel = page.locator("#evaluation-panel")
    expect(panel).to_be_visible()
    return panel


def start_by_hand(page: Page, platform: Platform) -> str:
    """Through the form: a model that comes by the link, two benchmarks, fewer problems; the id."""
    page.goto(f"{platform.url}/evaluations/new?model={platform.models['seedling']}")
    expect(page.locator("[data-test=models]")).to_contain_text("seedling")
    expect(page.locator("[data-test=start]")).to_be_disabled()
    page.get_by_role("button", name="Add GSM8K").click()
    page.get_by_role("button", name="Add MATH-500").focus()
    page.keyboard.press("Enter")
    gsm8k = page.locator("[data-order=gsm8k]")
    gsm8k.get_by_label("Problems").fill("0")
    expect(gsm8k.get_by_role("alert")).to_have_text("At least 1.")
    expect(page.locator("[data-test=start]")).to_be_disabled()
    gsm8k.get_by_label("Problems").fill("40")
    page.locator("[data-order=math500]").get_by_label("Problems").fill("20")
    estimate = page.locator("[data-test=estimate]")
    expect(estimate.locator("[data-total=samples]")).to_contain_text("60")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile("/evaluations/ev_"))
    return page.url.rsplit("/", 1)[1]


def test_an_evaluation_is_started_followed_and_cancelled(
    logged_in: Page, platform: Platform, call_api
) -> None:
    evaluation_id = start_by_hand(logged_in, platform)
    expect(logged_in.locator("[data-state=queued]")).to_be_visible()
    job_id = call_api("GET", f"/evaluations/{evaluation_id}")["job_id"]
    run = ReportingJob(job_id, platform.url, platform.database)
    run.start()
    values = {"gsm8k/strict": 0.25, "gsm8k/flexible": 0.5}
    run.send(
        {"kind": "progress", "time": now(), "phase": "validating", "step": 15, "total_steps": 60},
        {"kind": "metrics", "time": now(), "step": 15, "values": values},
    )

    expect(logged_in.get_by_text("15 of 60 samples")).to_be_visible()
    partial = logged_in.locator("[data-test=partial]")
    expect(partial.locator("[data-label=gsm8k]")).to_contain_text("25.0%")
    expect(partial.locator("[data-label=math500]")).to_contain_text("pending")
    logged_in.get_by_role("tab", name="Samples").click()
    expect(logged_in.get_by_text("Samples are available once the benchmark finishes")).to_be_visible()

    logged_in.locator("[data-test=cancel]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Cancel evaluation").click()
    expect(logged_in.locator("[data-state=stopping]")).to_be_visible()
    run.settle("stopped")
    expect(logged_in.locator("[data-state=stopped]")).to_be_visible()
    expect(logged_in.locator("[data-test=retry]")).to_be_visible()


def test_why_an_evaluation_failed_is_said_with_a_way_on(
    logged_in: Page, platform: Platform, call_api
) -> None:
    body = {
        "targets": [{"kind": "model", "model": platform.models["sapling"]}],
        "benchmarks": [order("gsm8k")],
        "name": "in vain",
    }
    made = call_api("POST", "/evaluations", body)["items"][0]
    run = ReportingJob(made["job_id"], platform.url, platform.database)
    run.start()
    run.settle("failed", exit_code=1, reason="The machine ran out of memory.", cause="out_of_memory")
    logged_in.goto(f"{platform.url}/evaluations/{made['id']}")

    expect(logged_in.locator("[data-test=failure]")).to_contain_text("The machine ran out of memory.")
    logged_in.locator("[data-test=retry]").click()
    expect(logged_in.locator("[data-state=queued]")).to_be_visible()
    call_api("POST", f"/evaluations/{made['id']}/cancel")


def test_scores_stand_with_intervals_verdicts_and_breakdowns(logged_in: Page, platform: Platform) -> None:
    panel = open_evaluation(logged_in, platform, "sapling")
    result = panel.locator("[data-label=math500]")
    answers = answer_problems("math500", PROBLEMS, 0.7, seed=1)
    right = sum(one.score for one in answers)

    expect(panel.get_by_role("img", name=re.compile("Summary: GSM8K: .*; MATH-500: "))).to_be_visible()
    row = result.locator("[data-metric=strict]")
    expect(row).to_contain_text(f"{right / PROBLEMS:.1%}")
    expect(row).to_contain_text(re.compile(r"\d+\.\d% – \d+\.\d%"))
    truncated = sum(one.verdict == "truncated" for one in answers)
    expect(result.locator("[data-verdict=truncated]").first).to_contain_text(str(truncated))
    expect(
        result.get_by_role("img", name=re.compile(r"By level: Level 1 \(\d+\): .*Level 5"))
    ).to_be_visible()
    result.get_by_text("type", exact=True).click()
    expect(result.get_by_role("img", name=re.compile("By type: .*Geometry"))).to_be_visible()

    result.get_by_role("button", name=re.compile("Truncated")).click()
    expect(logged_in).to_have_url(re.compile("tab=samples.*verdict=truncated"))
    expect(logged_in.locator("[data-sample]")).to_have_count(truncated)
    logged_in.get_by_role("tab", name="Manifest").click()
    expect(logged_in.locator("#evaluation-panel")).to_contain_text("vllm")


def test_samples_are_filtered_searched_and_walked_by_keys(logged_in: Page, platform: Platform) -> None:
    panel = open_evaluation(logged_in, platform, "seedling", "?tab=samples&label=gsm8k")
    detail = panel.locator("[data-test=sample]")
    answers = answer_problems("gsm8k", PROBLEMS, 0.4, seed=0)

    expect(panel.locator("[data-sample]")).to_have_count(50)
    expect(detail).to_contain_text("<|im_start|>user")
    panel.get_by_role("button", name="Load more").click()
    expect(panel.locator("[data-sample]")).to_have_count(100)
    logged_in.keyboard.press("j")
    expect(logged_in).to_have_url(re.compile(r"at=1\.0"))
    expect(detail.get_by_role("heading", name="#2")).to_be_visible()
    panel.locator('[data-sample="1.0"]').focus()
    logged_in.keyboard.press("ArrowDown")
    expect(panel.locator('[data-sample="2.0"]')).to_be_focused()

    wrong = sum(one.verdict == "wrong" for one in answers)
    panel.get_by_role("search").get_by_role("button", name=re.compile("Wrong")).click()
    expect(panel.locator("[data-sample]")).to_have_count(min(wrong, 50))
    expect(panel.locator("[data-sample] [data-verdict]:not([data-verdict=wrong])")).to_have_count(0)
    panel.get_by_role("button", name="Clear filters").click()
    logged_in.keyboard.press("/")
    logged_in.keyboard.type("count them in the garden")
    unanswered = sum(one.verdict == "unanswered" for one in answers)
    expect(panel.locator("[data-sample]")).to_have_count(unanswered)
    expect(detail).to_contain_text("no answer found")


def test_answers_of_two_models_stand_side_by_side(logged_in: Page, platform: Platform) -> None:
    other = platform.evaluations["seedling"]
    query = f"?tab=samples&label=gsm8k&against={other}&changed=better"
    panel = open_evaluation(logged_in, platform, "sapling", query)
    here = answer_problems("gsm8k", PROBLEMS, 0.7, seed=1)
    there = answer_problems("gsm8k", PROBLEMS, 0.4, seed=0)
    better = sum(one.score > two.score for one, two in zip(here, there, strict=True))

    expect(panel.locator("[data-test=changes]")).to_contain_text(f"{better} better,")
    expect(panel.locator("[data-sample]")).to_have_count(min(better, 50))
    expect(panel.get_by_role("region", name="sapling").locator("[data-verdict=correct]")).to_be_visible()
    expect(panel.get_by_role("region", name="seedling").locator("mark").first).to_be_visible()

    choose_from_select(logged_in, panel.locator("[data-test=changed]"), "Worse here")
    expect(logged_in).to_have_url(re.compile("changed=worse"))
    worse = sum(one.score < two.score for one, two in zip(here, there, strict=True))
    expect(panel.locator("[data-sample]")).to_have_count(worse)


def test_two_evaluations_are_chosen_from_the_list(logged_in: Page, platform: Platform) -> None:
    bar = logged_in.get_by_role("navigation", name="Main navigation")
    bar.get_by_role("link", name="Evaluations").click()
    rows = logged_in.locator("tr[data-evaluation]")
    row = logged_in.locator(f"[data-evaluation={platform.evaluations['sapling']}]")
    expect(row).to_contain_text(re.compile(r"GSM8K\s*\d+\.\d%"))
    logged_in.goto(f"{platform.url}/evaluations?model={platform.models['sapling']}&state=succeeded")
    expect(rows).to_have_count(1)
    logged_in.get_by_role("button", name="Clear filters").click()
    for name in ("seedling", "sapling"):
        logged_in.locator(f"[data-evaluation={platform.evaluations[name]}]").get_by_role("checkbox").check()
    logged_in.locator("[data-test=compare]").click()

    a, b = platform.evaluations["seedling"], platform.evaluations["sapling"]
    expect(logged_in).to_have_url(re.compile(f"compare.ids={a},{b}"))


def test_a_benchmark_is_installed_from_the_catalogue(logged_in: Page, platform: Platform) -> None:
    logged_in.goto(f"{platform.url}/evaluations/benchmarks")
    expect(logged_in.locator("[data-benchmark=gsm8k] [data-install=ready]")).to_be_visible()
    mmlu = logged_in.locator("[data-benchmark=mmlu]")
    with logged_in.expect_response("**/benchmarks/mmlu/install"):
        mmlu.get_by_role("button", name="Install MMLU").click()
    expect(mmlu.get_by_role("progressbar")).to_be_visible()
    with platform.database.write() as session:
        assert benchmarks.mark_installing(session, name="mmlu")
        benchmarks.mark_failed(session, name="mmlu", reason="The hub does not answer.")
    expect(mmlu.get_by_role("alert")).to_contain_text("The hub does not answer.")
    # What brings the files begins when the platform has been asked to.
    with logged_in.expect_response("**/benchmarks/mmlu/install"):
        mmlu.get_by_role("button", name="Install MMLU").click()
    install_benchmark(platform.database, "mmlu", {"subject": {"astronomy": 152}})
    expect(mmlu.locator("[data-install=ready]")).to_be_visible()

    mmlu.get_by_role("button", name="Evaluate").click()
    expect(logged_in.locator("[data-order=mmlu]")).to_be_visible()


def test_the_pages_are_chinese_and_fit_a_phone(logged_in: Page, platform: Platform) -> None:
    logged_in.keyboard.press("l")
    logged_in.set_viewport_size({"width": 390, "height": 844})
    evaluation = f"/evaluations/{platform.evaluations['sapling']}"
    against = platform.evaluations["seedling"]
    for path, heading in (
        ("/evaluations", "评测"),
        ("/evaluations/new?benchmarks=gsm8k,math500,humaneval,mmlu,custom,harness", "新建评测"),
        ("/evaluations/benchmarks", "基准"),
        (evaluation, None),
        (f"{evaluation}?tab=samples&label=gsm8k&against={against}&at=3.0", None),
        (f"{evaluation}?tab=settings", None),
        (f"{evaluation}?tab=manifest", None),
    ):
        logged_in.goto(f"{platform.url}{path}")
        main = logged_in.get_by_role("main")
        expect(main.locator("h1")).to_be_visible()
        if heading is not None:
            expect(main.locator("h1")).to_have_text(heading)
        expect(main.get_by_role("status", name="加载中")).to_have_count(0)
        assert KEY_NAME.findall(main.inner_text()) == []
        beyond = logged_in.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert beyond <= 0, f"{path} is {beyond} px too wide"
