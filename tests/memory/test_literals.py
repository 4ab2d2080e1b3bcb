"""Which literals a text has: written by hand, in English and Chinese, false positives too."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.literals import (
    KINDS,
    LONGEST,
    MOST,
    Kind,
    Literal,
    from_json,
    literals,
    spans,
    to_json,
)

# A text, and its literals as "kind text", in order.
FOUND = {
    # Ids and codes: letters and digits in one word.
    "Order #W2378156 is delayed": ["id #W2378156"],
    "the coupon A1B2C3 worked": ["code A1B2C3"],
    "my user ID is mia_li_3668.": ["id mia_li_3668"],
    "ORD-2024-001 and CVE-2031-55110": ["id ORD-2024-001", "id CVE-2031-55110"],
    "pay with gift_card_123": ["id gift_card_123"],
    "id 550e8400-e29b-41d4-a716-446655440000": ["id 550e8400-e29b-41d4-a716-446655440000"],
    "commit 9f86d081884c7d65": ["id 9f86d081884c7d65"],
    "order KX-40718/b": ["id KX-40718/b"],
    "refund 7731-40718, not 7731-40781": ["id 7731-40718", "id 7731-40781"],
    "card 1234-5678-9012-3456": ["id 1234-5678-9012-3456"],
    "订单号KX40718已退款": ["id KX40718"],
    "订单12345678": ["id 12345678"],
    "门禁码0093": ["code 0093"],
    "#12 is mine": ["id #12"],
    "GPT-4 on Boeing-737": ["code GPT-4", "code Boeing-737"],
    "v2.3.1 at 10.0.0.1": ["code v2.3.1", "code 10.0.0.1"],
    "see report7.pdf in /srv/a-b": ["code report7.pdf", "code /srv/a-b"],
    "seat 12C": ["code 12C"],
    'code is **VAAOXJ**, {"reservation_id": "HXDUBJ"}': ["code VAAOXJ", "code HXDUBJ"],
    "квартира АБ-1234": ["id АБ-1234"],
    # Flights: only where the text speaks of flying.
    "flights HAT001 and 3U8888": ["flight HAT001", "flight 3U8888"],
    "航班CA1234准点": ["flight CA1234"],
    "standard ISO9001": ["id ISO9001"],
    # Amounts.
    "total $54.04": ["amount $54.04"],
    "¥1,299 or ￥99": ["amount ¥1,299", "amount ￥99"],
    "价格1299元,合3万元": ["amount 1299元", "amount 3万元"],
    "USD 50, 50 dollars, 17.45 EUR": ["amount USD 50", "amount 50 dollars", "amount 17.45 EUR"],
    "US$5 million or $3k": ["amount US$5 million", "amount $3k"],
    "€1.299,00 or 17,45 EUR": ["amount €1.299,00", "amount 17,45 EUR"],
    "人民币300元，RMB 300，20块钱": ["amount 人民币300元", "amount RMB 300", "amount 20块钱"],
    "from $5-$10": ["amount $5", "amount $10"],
    "$5": ["amount $5"],
    "room 12 $50": ["number 12", "amount $50"],
    "2024元旦": ["number 2024"],
    "一块3公里": [],
    # Numbers: two digits or more, decimals, percentages, scales.
    "32 rooms, 1,299 guests, 3.5 stars": ["number 32", "number 1,299", "number 3.5"],
    "Python 3.11 came in 2022": ["number 3.11", "number 2022"],
    "5% or 5 percent, 3万人": ["number 5%", "number 5 percent", "number 3万"],
    "10km in 45min, 500ml": ["number 10km", "number 45min", "number 500ml"],
    "at 100km/h": ["number 100km/h"],
    "-12 degrees (-3.5)": ["number -12", "number -3.5"],
    "the 21st, mid-2024, top-10": ["number 21st", "number 2024", "number 10"],
    "10-20 or 2019-2020, 24-hour": [f"number {n}" for n in (10, 20, 2019, 2020, 24)],
    "24/7, 8.8/10": ["number 24", "number 8.8", "number 10"],
    "气温１２度, ٣٤": ["number １２", "number ٣٤"],
    "买了12，300件": ["number 12", "number 300"],
    "it was 12.": ["number 12"],
    "7 nights, 3个, the 3rd, #5, 2h, 4K, option 3-5": [],
    "1. first\n2) second\n10. tenth\n11、苹果": [],
    "12.": ["number 12"],
    "step2, Python3, utf8, H2O, B2, address1, person1_name": [],
    # Dates.
    "on 2024-05-15, 2024/5/16": ["date 2024-05-15", "date 2024/5/16"],
    "until 2024.5.17": ["date 2024.5.17"],
    "May 15, 2024 and May 20th": ["date May 15, 2024", "date May 20th"],
    "15 May 2024, 1st of June, Sept. 3": ["date 15 May 2024", "date 1st of June", "date Sept. 3"],
    "since March 2019": ["date March 2019"],
    "2024年5月15日到5月20号,2025年6月": ["date 2024年5月15日", "date 5月20号", "date 2025年6月"],
    "15/05/2024 05/15/2024 05/06/2024": ["date 15/05/2024", "date 05/15/2024", "date 05/06/2024"],
    "15.05.2024": ["date 15.05.2024"],
    "a typo: 2031-02-30": ["date 2031-02-30"],
    "you may go, 3个月": [],
    # Times.
    "2024-05-15T15:00:00Z": ["date 2024-05-15", "time 15:00:00"],
    "14 May 09:40": ["date 14 May", "time 09:40"],
    "10:30, 3pm, 3:30 p.m. at 9 am.": ["time 10:30", "time 3pm", "time 3:30 p.m.", "time 9 am"],
    "下午3点，晚上 8点半": ["time 下午3点", "time 晚上 8点半"],
    "15时30分，17点停止": ["time 15时30分", "time 17点"],
    "开放时间：8：00-16：00": ["time 8：00", "time 16：00"],
    "ratio 16:9": ["number 16"],
    # Emails, URLs, phones.
    "to a.b+c@x.co.uk.": ["email a.b+c@x.co.uk"],
    "邮箱li_2@qq.com谢谢": ["email li_2@qq.com"],
    "(see https://a.b/c?d=12). www.foo.com!": ["url https://a.b/c?d=12", "url www.foo.com"],
    "请看https://a.cn/x了解": ["url https://a.cn/x"],
    "[wiki](https://a.b/c_(d))": ["url https://a.b/c_(d))"],
    "+1 (415) 555-2671 or 415-555-2671": ["phone +1 (415) 555-2671", "phone 415-555-2671"],
    "手机13812345678,座机010-64013006": ["phone 13812345678", "phone 010-64013006"],
    # Names and addresses, behind cues only.
    "Hi, my name is Mia Li and I'm John Smith.": ["name Mia Li", "name John Smith"],
    "Ask Mr. Jones or Dr. Ilse V.": ["name Mr. Jones", "name Dr. Ilse V."],
    "我叫李雷,他名叫王小明。": ["name 李雷", "name 王小明"],
    "我叫孙悦今年二十": ["name 孙悦"],
    "我是陈阳。我是学生。我是一名助手": ["name 陈阳"],
    "联系人Ilse,联系人信息": ["name Ilse"],
    "I'm Happy today, Ada said": [],
    "975 Sunset Drive, Suite 217, Austin, TX 78750": [
        "address 975 Sunset Drive, Suite 217, Austin, TX 78750"
    ],
    "in Austin, TX 78750": ["address TX 78750"],
    "My address is 12 Rue de Lille. Thanks": ["address 12 Rue de Lille"],
    "地址在北京市朝阳区大街141号，电话": ["address 北京市朝阳区大街141号"],
    "the address is fine": [],
    # The text of JSON: escapes are not letters.
    '{"city": "\\u5317\\u4eac12\\n34", "price": 54.0}': ["number 12", "number 34", "number 54.0"],
    # Another alphabet parts its words, too.
    "é1 naïve7 Élan": [],
    "": [],
}  # fmt: skip

PIECES = st.sampled_from(
    [
        *FOUND,
        " ",
        "，",
        ", ",
        "\n",
        "-",
        "/",
        "#",
        "$",
        "1",
        "12",
        "元",
        "a",
        "é",
        "月",
        "点",
        "\0",
        "'",
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=6).map("".join), st.text(st.characters(), max_size=60))


@pytest.mark.parametrize(("text", "found"), FOUND.items())
def test_the_literals_of_a_text(text: str, found: list[str]) -> None:
    assert [f"{one.kind} {one.text}" for one in literals(text)] == found


def test_the_table_has_every_kind() -> None:
    assert {one.split()[0] for found in FOUND.values() for one in found} == set(get_args(Kind))


def test_a_literal_is_listed_once_where_it_is_first_written() -> None:
    assert literals("42 a1b2c3 A1B2C3 42 7777") == (
        Literal("number", "42"),
        Literal("code", "a1b2c3"),
        Literal("number", "7777"),
    )


def test_spans_give_every_place() -> None:
    assert spans("12 and $5, 12") == (
        (0, 2, Literal("number", "12")),
        (7, 9, Literal("amount", "$5")),
        (11, 13, Literal("number", "12")),
    )


@given(TEXTS)
def test_spans_are_verbatim_in_order_and_apart(text: str) -> None:
    end = 0
    for start, stop, literal in spans(text):
        assert end <= start < stop <= len(text)
        assert text[start:stop] == literal.text
        assert literal.text == literal.text.strip()
        assert len(literal.text.splitlines()) == 1
        end = stop


def test_a_giant_text_gives_its_first_literals() -> None:
    found = literals(" ".join(str(number) for number in range(10_000, 20_000)))
    assert found == tuple(Literal("number", str(10_000 + index)) for index in range(MOST))


def test_what_is_too_long_to_carry_is_left_out_whole() -> None:
    path = "/".join(["part-7"] * 40)
    assert len(path) == 279
    url = f"https://a.b/{path}"
    assert literals(url) == (Literal("url", url),)
    longer = url + "-" * (LONGEST - len(url)) + "7"
    assert literals(longer) == ()
    assert literals("a1-" * 200 + "x9") == ()


def test_data_in_base64_is_no_literal() -> None:
    assert literals(f"{'iVBORw0KGgo7/' * 20} and 42") == (Literal("number", "42"),)


# What would be many repeats of the start of some shape.
HOSTILE = [
    "/a", "a-", "1-", "a1.", "1,111", "a@", "x.", "+1", "+12345678901234567890a", "1:", "$", "A ",
    "address: 5 a", "1 Aa Bb Cc Dd Ee ", "my name is ", "我叫地址是", "http://a)", "number    ",
    "_1", "5%", "5万", "1.", "#", "'", "\n 1", "May ", "12 ", ", AB 12345",
]  # fmt: skip


@pytest.mark.parametrize("unit", ["a", "9", "1,", " "])
def test_a_megabyte_of_one_thing_is_read_in_linear_time(unit: str) -> None:
    """No clock here: a quadratic pattern would not come to an end."""
    assert literals(unit * (1_000_000 // len(unit))) == ()


@pytest.mark.parametrize("unit", HOSTILE)
def test_repeats_of_a_shape_are_read_in_linear_time(unit: str) -> None:
    assert len(literals(unit * (100_000 // len(unit)))) <= MOST
    assert len(literals("http://a" + unit * (100_000 // len(unit)))) <= MOST


def test_literals_go_through_json() -> None:
    found = literals("Order #W2378156 for $54.04 on 5月20号")
    assert to_json(found) == [["id", "#W2378156"], ["amount", "$54.04"], ["date", "5月20号"]]
    assert from_json(to_json(found)) == found


def test_an_unknown_kind_is_refused() -> None:
    assert "secret" not in KINDS
    with pytest.raises(ValueError, match="not in tuple"):
        from_json([["secret", "x"]])
