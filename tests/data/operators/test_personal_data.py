"""Personal data masked, and look-alikes left alone."""

import random
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trellis_data.operators.personal_patterns import is_bank_card, is_resident_id
from trellis_testing.operator_runs import answers, chats, cleaned, documents, run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mail john.doe+x@mail.example.com.", "mail [EMAIL]."),
        ("邮箱zhang_san@163.com谢谢", "邮箱[EMAIL]谢谢"),
        ("电话13812345678，", "电话[PHONE]，"),
        ("+86 138 1234 5678 or 138-1234-5678", "[PHONE] or [PHONE]"),
        ("座机010-62345678，(021)6234-5678", "座机[PHONE]，[PHONE]"),
        ("服务热线400-820-8820", "服务热线[PHONE]"),
        ("call +1 650-253-0000 or (650) 253-0000", "call [PHONE] or [PHONE]"),
        ("+44 20 7031 3000", "[PHONE]"),
        ("身份证11010519491231002X。", "身份证[ID_NUMBER]。"),
        ("card 4111 1111 1111 1234 no", "card 4111 1111 1111 1234 no"),
        ("card 4539 1488 0343 6467 yes", "card [BANK_CARD] yes"),
        ("卡号6222021234567890128", "卡号[BANK_CARD]"),
        ("host 8.8.8.8 and 2001:4860:4860::8888", "host [IP_ADDRESS] and [IP_ADDRESS]"),
        ("key sk-proj-a8Fk29dLq0ZxPw73NvBt51Yu", "key [KEY]"),
        ("AKIAIOSFODNN7EXAMPLE", "[KEY]"),
        ('api_key = "f3A9d0c1B7e2x8Q4"', 'api_key = "[KEY]"'),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[KEY]"),
    ],
)
def test_personal_data_are_masked(before: str, after: str) -> None:
    assert cleaned("personal_data", before) == [after]


LOOK_ALIKES = [
    "On 2024-01-15 12:30:45 and 2023/12/31, 20240115123045",
    "1,234,567.89 + 9,876,543.21 = 11,111,111.10",
    "3.14159265358979323846 and 2.718281828459045",
    "version 1.2.3.4, v10.0.19041.1, numpy==1.26.4.1, 版本2.3.4.5",
    "127.0.0.1 and 192.168.1.1 and 10.0.0.255, 0.0.0.0",
    "std::cout << a::b; 12:30:45; dead::beef; fe80::1",
    "ISBN 978-3-16-148410-0, 9783161484100",
    "550e8400-e29b-41d4-a716-446655440000",
    "d41d8cd98f00b204e9800998ecf8427e and commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "Order 1234567890123456, invoice 20240101-0001, 110105194912310021",
    "$<<6000-600-150-1200-2000=2050>>2050 and 138-1234-5678=1",
    "f(x) = 1234567 * 7654321 = 9472346082307",
    "@decorator def f(): x @ y; user@localhost; a@b",
    "temperatures 12 345 678 901, scores 10-20-30-40",
    "password: please choose a long one; the token: string; secret = os.environ['KEY']",
    "token = get_token(user); api_key=YOUR_API_KEY_HERE",
    "sk-learn and sk-something-with-words-only-in-here",
    "1000000000000000000 2000000000000000000 1600000000000",
    "phone model 15-2021-2022, range 100-200-3000, 2021-2022",
    "圆周率3.1415926535897，电话区号010，共13800元，编号138001380001",
    "章节 1.2.3.4.5 第1.2.3.4节 §1.2.3.4",
]


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_look_alikes_are_left_alone(text: str) -> None:
    assert cleaned("personal_data", text) == [text]


def test_kinds_are_counted_and_can_be_dropped_or_left() -> None:
    batch = documents("a@b.org c@d.org 13812345678", "nothing", "8.8.8.8")

    outcome = run("personal_data", batch, mask=["email"], drop=["phone"])

    assert outcome.counts == {"email": 2, "phone": 1}
    assert outcome.reasons == {0: "personal:phone"}
    assert outcome.table["text"].to_pylist() == ["nothing", "8.8.8.8"]


def test_numbered_marks_stand_for_the_same_person_throughout_a_row() -> None:
    batch = chats([("user", "a@b.org and c@d.org"), ("assistant", "c@d.org, A@b.org")], [("user", "c@d.org")])

    rows = run("personal_data", batch, numbered=True).table["messages"].to_pylist()

    assert [[turn["content"] for turn in row] for row in rows] == [
        ["[EMAIL_1] and [EMAIL_2]", "[EMAIL_2], [EMAIL_1]"],
        ["[EMAIL_1]"],
    ]


def test_only_the_texts_that_are_asked_for_are_masked() -> None:
    outcome = run("personal_data", answers(("a@b.org", "c@d.org")), where="answer")

    assert outcome.table.to_pylist() == [{"question": "a@b.org", "answer": "[EMAIL]"}]


def test_numbers_at_random_are_hardly_ever_taken_for_something_else() -> None:
    draw = random.Random(7)
    texts = [_number(draw) for _ in range(3000)]

    changed = run("personal_data", documents(*texts)).changed

    wrong = [text for text, is_masked in zip(texts, changed, strict=True) if is_masked]
    assert len(wrong) / len(texts) <= 0.01, wrong[:20]


def _number(draw: random.Random) -> str:
    """Dates, sums, times, versions, decimals, coordinates: numbers as texts have them."""
    size = draw.randint(1, 9)
    forms = (
        lambda: f"{draw.randint(1900, 2099)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
        lambda: f"{draw.randint(0, 10**size):,}.{draw.randint(0, 99):02}",
        lambda: f"{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}",
        lambda: f"v{draw.randint(0, 20)}.{draw.randint(0, 99)}.{draw.randint(0, 9999)}.{draw.randint(0, 99)}",
        lambda: repr(draw.uniform(-1000, 1000)),
        lambda: f"{draw.randint(1, 999)} + {draw.randint(1, 99999)} = {draw.randint(1, 99999)}",
        lambda: str(draw.randint(0, 10 ** draw.randint(1, 10))),
        lambda: f"{draw.uniform(-90, 90):.6f}, {draw.uniform(-180, 180):.6f}",
        lambda: " ".join(str(draw.randint(0, 999)) for _ in range(draw.randint(2, 6))),
    )
    return f"value {draw.choice(forms)()} here"


def _with_check_digit(digits: str) -> str:
    return next(digits + check for check in "0123456789" if is_bank_card(digits + check))


@given(st.integers(0, 10**9), st.sampled_from(["4539", "5412", "3530"]))
def test_a_card_with_one_digit_wrong_is_none(rest: int, issuer: str) -> None:
    digits = f"{issuer}{rest:011}"
    if len(set(digits)) < 5:
        return
    card = _with_check_digit(digits)

    wrong = card[:6] + str((int(card[6]) + 1) % 10) + card[7:]

    assert is_bank_card(card)
    assert not is_bank_card(wrong)


@given(st.dates(min_value=date(1900, 1, 1)), st.integers(0, 999))
def test_exactly_one_check_digit_makes_a_resident_number(born: date, order: int) -> None:
    body = f"110105{born:%Y%m%d}{order:03}"

    right = [check for check in "0123456789X" if is_resident_id(body + check)]

    assert len(right) == 1
    assert not is_resident_id("99" + body[2:] + right[0])
