"""Well-known problems as tables of steps: state, action, probability, next state, reward, whether the process ends.

FrozenLake, CliffWalking and Taxi have the states, actions and rows of Gymnasium's `toy_text` in Gymnasium's order, so
that the same random number gives the same step. The other problems are those of R. Sutton and A. Barto, Reinforcement
Learning, 2018: the gambler (example 4.3), Jack's car rental (4.2), blackjack (5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import poisson

from ..core import AnyArray, DataError, ParameterError

LAKES = {
    "4x4": ("SFFF", "FHFH", "FFFH", "HFFG"),
    "8x8": ("SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"),
}
_TAXI_MAP = ("|R: | : :G|", "| : | : : |", "| : : : : |", "| | : | : |", "|Y| : |B: |")
_TAXI_STANDS = ((0, 0), (0, 4), (4, 0), (4, 3))
#: Chance of each value of a card, ace to ten, from an endless deck.
_CARDS = np.array([1.0] * 9 + [4.0]) / 13.0


class StepTable(NamedTuple):
    """Every step that a process can take."""

    state: AnyArray  #: (n_rows,)
    action: AnyArray  #: (n_rows,)
    probability: AnyArray  #: (n_rows,)
    next_state: AnyArray  #: (n_rows,)
    reward: AnyArray  #: (n_rows,)
    terminal: AnyArray  #: (n_rows,) whether the process ends with the step
    start: AnyArray  #: (n_states,) probabilities of the first state


Rows = list[tuple[int, int, float, int, float, bool]]


def make_table(rows: Rows, start: Any) -> StepTable:
    """Return the table of a list of rows."""
    s, a, p, after, r, end = zip(*rows, strict=True)
    whole = [np.array(column, dtype=np.int64) for column in (s, a, after)]
    real = [np.array(column, dtype=np.float64) for column in (p, r)]
    ends = np.array(end, dtype=bool)
    return StepTable(whole[0], whole[1], real[0], whole[2], real[1], ends, np.asarray(start, dtype=np.float64))


def frozen_lake_table(layout: str | Sequence[str] = "4x4", slippery: bool = True) -> StepTable:
    """Walk over ice with holes (H) to the goal (G); on slippery ice two steps in three go sideways."""
    if isinstance(layout, str) and layout not in LAKES:
        raise ParameterError(f"frozen_lake: layout must be '4x4', '8x8' or a list of lines; got {layout!r}.")
    lines = LAKES[layout] if isinstance(layout, str) else tuple(layout)
    n_rows = len(lines)
    n_columns = len(lines[0])
    if any(len(line) != n_columns or set(line) - set("SFHG") for line in lines):
        raise DataError("frozen_lake: a layout has lines of one length made of S, F, H and G.")
    rows: Rows = []
    for s in range(n_rows * n_columns):
        i, j = divmod(s, n_columns)
        for a in range(4):  # left, down, right, up
            if lines[i][j] in "GH":
                rows.append((s, a, 1.0, s, 0.0, True))
                continue
            turns = [(a - 1) % 4, a, (a + 1) % 4] if slippery else [a]
            fail = (1.0 - 1.0 / 3.0) / 2.0
            for b in turns:
                di, dj = ((0, -1), (1, 0), (0, 1), (-1, 0))[b]
                y = min(max(i + di, 0), n_rows - 1)
                x = min(max(j + dj, 0), n_columns - 1)
                p = 1.0
                if slippery:
                    p = 1.0 / 3.0 if b == a else fail
                letter = lines[y][x]
                rows.append((s, a, p, y * n_columns + x, float(letter == "G"), letter in "GH"))
    start = np.array([letter == "S" for line in lines for letter in line], dtype=np.float64)
    return make_table(rows, start / start.sum())


def cliff_walking_table() -> StepTable:
    """Walk along a cliff, 4 × 12: each step costs 1, a step over the edge 100 and leads back to the start."""
    rows: Rows = []
    for s in range(48):
        i, j = divmod(s, 12)
        for a, (di, dj) in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):  # up, right, down, left
            y = min(max(i + di, 0), 3)
            x = min(max(j + dj, 0), 11)
            if y == 3 and 0 < x < 11:
                rows.append((s, a, 1.0, 36, -100.0, False))
            else:
                rows.append((s, a, 1.0, 12 * y + x, -1.0, (y, x) == (3, 11)))
    return make_table(rows, np.eye(48)[36])


def taxi_table() -> StepTable:
    """Fetch a passenger and bring them to their hotel, on 5 × 5 fields with walls (Dietterich 2000)."""
    rows: Rows = []
    start = np.zeros(500)
    for s in range(500):
        rest, goal = divmod(s, 4)
        rest, passenger = divmod(rest, 5)
        y, x = divmod(rest, 5)
        start[s] = passenger < 4 and passenger != goal
        for a in range(6):  # south, north, east, west, pick up, drop off
            i = y
            j = x
            who = passenger
            reward = -1.0
            end = False
            if a == 0:
                i = min(y + 1, 4)
            elif a == 1:
                i = max(y - 1, 0)
            elif a == 2 and _TAXI_MAP[y][2 * x + 2] == ":":
                j = min(x + 1, 4)
            elif a == 3 and _TAXI_MAP[y][2 * x] == ":":
                j = max(x - 1, 0)
            elif a == 4:
                if passenger < 4 and _TAXI_STANDS[passenger] == (y, x):
                    who = 4
                else:
                    reward = -10.0
            elif a == 5:
                if passenger == 4 and (y, x) == _TAXI_STANDS[goal]:
                    who = goal
                    reward = 20.0
                    end = True
                elif passenger == 4 and (y, x) in _TAXI_STANDS:
                    who = _TAXI_STANDS.index((y, x))
                else:
                    reward = -10.0
            rows.append((s, a, 1.0, ((5 * i + j) * 5 + who) * 4 + goal, reward, end))
    return make_table(rows, start / start.sum())


def gambler_table(p_heads: float = 0.4, goal: int = 100) -> StepTable:
    """Stake part of the capital on a coin until it is gone, or is the goal, which earns 1; action a stakes a."""
    if not 0.0 < p_heads < 1.0 or goal < 2:
        raise ParameterError(f"gambler: needs 0 < p_heads < 1 and goal >= 2; got {p_heads!r} and {goal!r}.")
    rows: Rows = []
    for s in range(goal + 1):
        if s in (0, goal):
            rows.append((s, 0, 1.0, s, 0.0, True))
        for stake in range(1, min(s, goal - s) + 1):
            won = s + stake
            rows.append((s, stake, p_heads, won, float(won == goal), won == goal))
            rows.append((s, stake, 1.0 - p_heads, s - stake, 0.0, s == stake))
    start = np.zeros(goal + 1)
    start[1:goal] = 1.0 / (goal - 1)
    return make_table(rows, start)


def car_rental_table() -> StepTable:
    """Move cars between two places overnight: 20 cars at most, 5 moves, 2 per move, 10 per rental, Poisson demand.

    A step earns the expected rentals, less the moves; state 21·i + j has i and j cars, action a moves a − 5 from the
    first.
    """
    first = _one_place(3.0, 3.0)
    second = _one_place(4.0, 2.0)
    after = np.arange(441)
    rows: list[Any] = []
    for i in range(21):
        for j in range(21):
            for moved in range(-min(j, 5), min(i, 5) + 1):
                y = min(i - moved, 20)
                x = min(j + moved, 20)
                p = np.outer(first[0][y], second[0][x]).reshape(-1)
                reward = 10.0 * (first[1][y] + second[1][x]) - 2.0 * abs(moved)
                rows.append((np.full(441, 21 * i + j), np.full(441, moved + 5), p, after, np.full(441, reward)))
    s, a, p, to, r = (np.concatenate(column) for column in zip(*rows, strict=True))
    kept = p > 0.0
    end = np.zeros(kept.sum(), dtype=bool)
    return StepTable(s[kept], a[kept], p[kept], to[kept], r[kept], end, np.full(441, 1.0 / 441))


def _one_place(requests: float, returns: float) -> tuple[AnyArray, AnyArray]:
    """Return, for 0 to 20 cars in the morning, the law of the cars in the evening and the expected rentals."""
    law = np.zeros((21, 21))
    rented = np.zeros(21)
    for cars in range(21):
        asked = np.append(poisson.pmf(np.arange(cars), requests), poisson.sf(cars - 1, requests))  # at most all cars
        rented[cars] = asked @ np.arange(cars + 1)
        for out, chance in enumerate(asked):
            left = cars - out
            back = np.append(poisson.pmf(np.arange(20 - left), returns), poisson.sf(19 - left, returns))
            law[cars, left:] += chance * back
    return law, rented


def blackjack_table(sab: bool = True, natural: bool = False) -> StepTable:
    """Blackjack from an endless deck against a dealer who stands on 17: action 0 sticks, 1 hits.

    State `2·(10·(sum − 4) + dealer − 1) + ace` has the player's sum (4 to 21), the dealer's card (1 to 10), and whether
    an ace counts 11; states 360 to 369 are a natural (ace and ten at once). With `sab` a natural beats every hand that
    is none; with `natural` (and not `sab`) one that wins pays 1.5. Gymnasium's observation hides whether 21 is natural.
    """
    dealer = [_dealer(card) for card in range(1, 11)]
    rows: Rows = []
    for total in range(4, 22):
        for card in range(1, 11):
            for ace in (0, 1):
                s = blackjack_state(total, card, ace)
                rows += _stick(s, total, dealer[card - 1], False, sab, natural) + _hit(s, total, card, ace)
    for card in range(1, 11):
        s = 359 + card
        rows += _stick(s, 21, dealer[card - 1], True, sab, natural) + _hit(s, 21, card, 1)
    start = np.zeros(370)
    for card in range(10):
        for one in range(10):
            for two in range(10):
                chance = _CARDS[card] * _CARDS[one] * _CARDS[two]
                total = one + two + 2
                ace = int(min(one, two) == 0)
                if ace:
                    total += 10
                start[360 + card if total == 21 else blackjack_state(total, card + 1, ace)] += chance
    return make_table(rows, start)


def blackjack_state(total: int, dealer: int, ace: int) -> int:
    """Return the number of a state of `blackjack_table` that is no natural."""
    return 2 * (10 * (total - 4) + dealer - 1) + int(ace)


def _dealer(card: int) -> tuple[AnyArray, float]:
    """Return the law of the dealer's score (0 for bust, 17 to 21) and the chance of a natural, given the first card."""
    law = np.zeros(22)
    natural = 0.0

    def play(total: int, aces: bool, chance: float, n_cards: int) -> None:
        nonlocal natural
        best = total + 10 if aces and total + 10 <= 21 else total
        if best >= 17:
            law[best if best <= 21 else 0] += chance
            if best == 21 and n_cards == 2:
                natural += chance
            return
        for value, p in enumerate(_CARDS, start=1):
            play(total + value, aces or value == 1, chance * p, n_cards + 1)

    play(card, card == 1, 1.0, 1)
    return law, natural


def _stick(s: int, total: int, dealer: tuple[AnyArray, float], is_natural: bool, sab: bool, pays: bool) -> Rows:
    law, dealers_natural = dealer
    win = float(law[:total].sum())
    draw = float(law[total])
    prize = 1.0
    if is_natural and sab:
        win = 1.0 - dealers_natural
        draw = dealers_natural
    elif is_natural and pays:
        prize = 1.5
    outcomes = ((win, prize), (draw, 0.0), (1.0 - win - draw, -1.0))
    return [(s, 0, p, s, reward, True) for p, reward in outcomes if p > 1e-15]


def _hit(s: int, total: int, card: int, ace: int) -> Rows:
    chance: dict[int, float] = {}
    bust = 0.0
    hard = total - 10 if ace else total
    for value, p in enumerate(_CARDS, start=1):
        after = hard + value
        soft = (bool(ace) or value == 1) and after + 10 <= 21
        score = after + 10 if soft else after
        if score > 21:
            bust += p
            continue
        key = blackjack_state(score, card, int(soft))
        chance[key] = chance.get(key, 0.0) + p
    rows: Rows = [(s, 1, p, to, 0.0, False) for to, p in chance.items()]
    return rows + ([(s, 1, bust, s, -1.0, True)] if bust > 0.0 else [])


def grid_table(lines: Sequence[str], *, step_reward: float = -1.0, rewards: Any = None, slip: float = 0.0) -> StepTable:
    """Return a world of fields: `#` wall, `.` free, `S` start, `G` goal (ends), other letters with own rewards.

    Actions are 0 up, 1 right, 2 down, 3 left; with probability `slip` the step goes to one of the two sides instead. A
    step against a wall stays. `rewards` gives letters the reward of a step onto them; a capital letter in it ends, too.
    Walls are states that nothing reaches.
    """
    width = len(lines[0]) if lines else 0
    if width == 0 or any(len(line) != width for line in lines) or not 0.0 <= slip <= 1.0:
        raise DataError("grid_world: needs lines of one length, and 0 <= slip <= 1.")
    prize = {"G": 0.0} | dict(rewards or {})
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    rows: Rows = []
    for s in range(len(lines) * width):
        i, j = divmod(s, width)
        here = lines[i][j]
        for a in range(4):
            if here == "#" or (here in prize and here.isupper()):
                rows.append((s, a, 1.0, s, 0.0, True))
                continue
            for b, p in ((a, 1.0 - slip), ((a - 1) % 4, slip / 2.0), ((a + 1) % 4, slip / 2.0)):
                if p == 0.0:
                    continue
                y = i + moves[b][0]
                x = j + moves[b][1]
                if not (0 <= y < len(lines) and 0 <= x < width) or lines[y][x] == "#":
                    y = i
                    x = j
                there = lines[y][x]
                ends = there in prize and there.isupper()
                rows.append((s, a, p, y * width + x, step_reward + prize.get(there, 0.0), ends))
    start = np.array([letter == "S" for line in lines for letter in line], dtype=np.float64)
    free = np.array([letter not in "#" for line in lines for letter in line], dtype=np.float64)
    start = start if start.any() else free
    return make_table(rows, start / start.sum())
