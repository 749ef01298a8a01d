"""The prompts that formats of keys and values are tried with when none are given: work such as agents have.

Fixed, so that figures of different days and machines can be compared.
"""

from __future__ import annotations

import msgspec

from prefixguard.exchange import Exchange

_LOG = """\
09:14:02 worker-3 took job 4417 (resize, 212 images) from the queue
09:14:05 worker-1 finished job 4415 in 31.2 s, 0 images failed
09:14:09 worker-3 image 17 of 212: width 4032 height 3024, orientation 6
09:14:11 worker-2 took job 4418 (thumbnails, 40 images) from the queue
09:14:12 worker-3 image 18 of 212: unexpected end of file after 81920 bytes
09:14:12 worker-3 image 18 of 212: tried again, unexpected end of file after 81920 bytes
09:14:13 store   free space on volume b is 2.1 GiB, below the limit of 4 GiB
09:14:15 worker-2 image 3 of 40: width 800 height 600, orientation 1
09:14:19 worker-3 image 19 of 212: unexpected end of file after 81920 bytes
09:14:20 store   volume b is read-only until space is freed
09:14:21 worker-3 job 4417 stopped after 2 failures, 16 images written
09:14:22 worker-2 finished job 4418 in 11.0 s, 0 images failed
"""

_CODE = """\
class Basket:
    def __init__(self, limit):
        self.limit = limit
        self.items = {}

    def add(self, name, count=1):
        if count < 1:
            raise ValueError("count must be at least 1")
        if len(self) + count > self.limit:
            raise OverflowError(f"the basket holds at most {self.limit} items")
        self.items[name] = self.items.get(name, 0) + count

    def remove(self, name, count=1):
        have = self.items[name]
        if count >= have:
            del self.items[name]
        else:
            self.items[name] = have - count

    def __len__(self):
        return sum(self.items.values())


def merge(baskets, limit):
    whole = Basket(limit)
    for basket in baskets:
        for name, count in basket.items.items():
            whole.add(name, count)
    return whole
"""

_JSON = """\
{"orders": [
  {"id": 801, "customer": "Ines", "city": "Porto", "items": [{"sku": "lamp-2", "count": 1, "price": 39.5}]},
  {"id": 802, "customer": "Tomas", "city": "Brno", "items": [{"sku": "chair-9", "count": 4, "price": 58.0}]},
  {"id": 803, "customer": "Aiko", "city": "Sapporo", "items": [{"sku": "lamp-2", "count": 2, "price": 39.5},
    {"sku": "desk-1", "count": 1, "price": 210.0}]},
  {"id": 804, "customer": "Ines", "city": "Porto", "items": [{"sku": "chair-9", "count": 1, "price": 58.0}]},
  {"id": 805, "customer": "Wanjiru", "city": "Nakuru", "items": [
    {"sku": "shelf-3", "count": 3, "price": 24.0}]}
], "currency": "EUR", "page": 1, "of": 1}
"""

_PROSE = """\
The lighthouse on the northern point was built in three summers by the people of two villages who
had not spoken to each other for a generation. The stone came from the quarry of one, the oxen from
the stables of the other, and the quarrel over who should pay for the lamp was settled only when a
ship full of oranges broke up on the rocks on a clear night. For weeks the children of both villages
ate oranges on the beach, and the elders, who met there to count what had been washed ashore, found
that they had been sharing a fire. The lamp was lit in October. Its first keeper was a widow named
Sunniva, who wrote down the weather every evening for thirty-one years, and whose books are still
read by people who want to know how storms used to come.
"""

_TALK = """\
Ana: The build has been red since Tuesday. Does anyone know why?
Bo: The tests of the importer time out, but only on the small machines.
Ana: Did we change the importer?
Bo: No. We changed the archive that it reads: it is forty times as large now.
Cem: I asked for the large archive, because customers send files like that. It should not take a minute.
Ana: On my machine it takes nine seconds. On the small ones it takes four minutes and is then killed.
Cem: They have one gigabyte of memory. Does the importer read the whole archive before it starts?
Bo: It does. It makes a list of every row and then sorts it by date.
Cem: The rows are sorted already when they come out of the archive.
Ana: Then we could read them one by one. Who does it?
Bo: I will, on Friday. Until then I put the small archive back.
"""

_NOTES = """\
Trip notes. Day 1: flight to Lisbon, arrived at 11:40, bus 744 to the hostel, dinner near the river,
14 euros. Day 2: the tram was full, walked up to the castle, rain from 15:00, museum of tiles until
it closed, 10 euros. Day 3: train to Coimbra at 08:32, two hours, library of the university (book a
time slot, only 60 people at once), slept at a farm outside the town, 35 euros with breakfast. Day
4: bicycle along the Mondego, 42 kilometres, a flat tyre at kilometre 30, a man with a tractor
helped and wanted no money. Day 5: train to Porto, bridge, cellars, no wine because of the tyre,
which had to be paid: 22 euros. Day 6: flight home at 06:15, taxi 25 euros because there was no
metro yet.
"""

_SYSTEM = "You are careful. Read the material, then answer in a few plain sentences. Do not invent anything."

_ASKED = (
    (_LOG, "Which job failed, what was the cause, and what should be done first?"),
    (_CODE, "Explain what this module does, and name one case in which merge raises an error."),
    (_JSON, "List the customers with the sum of their orders, and say which city spent most."),
    (_PROSE, "Summarise the story, and say why the quarrel about the lamp ended."),
    (_TALK, "What is the cause of the red build, who does what, and until when?"),
    (_NOTES, "Add up the money that was spent, day by day, and explain the largest sum."),
)


def built_in() -> list[Exchange]:
    """Six requests with a system prompt, some material, and a question about it."""
    found = []
    for place, (material, question) in enumerate(_ASKED):
        messages = [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": f"{material}\n{question}"},
        ]
        body = msgspec.json.encode({"messages": messages})
        found.append(Exchange(float(place), "/v1/chat/completions", body))
    return found
