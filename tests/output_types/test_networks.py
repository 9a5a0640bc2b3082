"""IP networks: the grammar takes the texts that `ipaddress` reads, however they are shortened."""

from __future__ import annotations

import ipaddress
import json
import random

import pytest

from stencilm import GrammarMatcher

from .random_texts import matcher


@pytest.fixture(scope="module")
def networks() -> GrammarMatcher:
    return matcher(ipaddress.IPv6Network)


def is_network(text: str) -> bool:
    try:
        ipaddress.IPv6Network(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("::/0", True),
        ("::1", True),
        ("::1/128", True),
        ("::1/127", False),
        ("2001:db8::8:800:0:0/96", True),
        ("2001:db8::8:800:0:0/84", False),
        ("2:f490:2de2:59:0:e19e:824:0/110", True),
        ("2:f490:2de2:59:0:e19e:824:0/109", False),
        ("1:2:3:4:5:6:7::/112", True),
        ("0:0:1::/48", True),
        ("0:0:1::/47", False),
        ("::1:0:0:0/80", True),
        ("fe80:0:0:0:0:0:0:0/10", True),
        ("::ffff:10.0.0.0/104", True),
        ("::FFFF:10.1.0.0/104", False),
        ("1:2:3:4:5:6:7:8::/128", False),
    ],
    ids=str,
)
def test_the_text_of_a_network(networks: GrammarMatcher, text: str, fits: bool) -> None:
    assert is_network(text) == fits
    assert (networks.longest_valid_prefix(json.dumps(text)).status == "complete") == fits


def test_networks_at_random(networks: GrammarMatcher) -> None:
    chance = random.Random(3)
    for _ in range(1_500):
        address = chance.getrandbits(128)
        for _ in range(chance.randrange(4)):
            groups = chance.randrange(1, 7)
            address &= ~((1 << 16 * groups) - 1 << 16 * chance.randrange(8))
        length = chance.randrange(129)
        network = ipaddress.IPv6Network((address, length), strict=False)
        interface = ipaddress.IPv6Interface((address, length))
        for text in (str(network), network.exploded, str(interface), interface.exploded):
            fits = networks.longest_valid_prefix(json.dumps(text)).status == "complete"
            assert fits == is_network(text), text


def test_interfaces_may_be_mapped_addresses() -> None:
    start = matcher(ipaddress.IPv6Interface)
    assert start.longest_valid_prefix('"::ffff:1.2.3.4/97"').status == "complete"
    assert start.longest_valid_prefix('"::ffff:1.2.3.256/97"').status == "dead"
