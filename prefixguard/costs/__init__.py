"""Tokens to money: what a turn cost, what it would have cost, whose doing the difference is.

`rates` is the arithmetic, `tables` what price files say, `pricer` finds the
prices of a model, `turns` applies them to turns and sessions, `advice` shows
sums for decisions.
"""

from prefixguard.costs.advice import Advice, lifetime_advice, pruning_advice
from prefixguard.costs.pricer import ListPricer, Pricer
from prefixguard.costs.rates import Money, Rate, Rates, Terms, price, storage_cost, terms_of
from prefixguard.costs.tables import PriceTable
from prefixguard.costs.turns import Split, cost_of_turn, seconds_avoidable, split_avoidable, sum_costs

__all__ = [
    "Advice",
    "ListPricer",
    "Money",
    "PriceTable",
    "Pricer",
    "Rate",
    "Rates",
    "Split",
    "Terms",
    "cost_of_turn",
    "lifetime_advice",
    "price",
    "pruning_advice",
    "seconds_avoidable",
    "split_avoidable",
    "storage_cost",
    "sum_costs",
    "terms_of",
]
