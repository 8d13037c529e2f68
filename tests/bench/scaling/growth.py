# SPDX-License-Identifier: BSD-3-Clause
# How a measured quantity grows: fits of a power and of a logarithm to a curve, and whether the curve keeps a promise of doc/scaling.md.
# A curve is a list of (x, y) with x > 0. Pure functions: no files, no time, no state.
import math

PROMISES = {"constant": 0.0, "logarithmic": None, "linear": 1.0}
# By how much an exponent may exceed the promise. Counts repeat exactly but have steps, as a tree does that gets another level. Times of a
# machine that does other work too are judged by the lower end of their range.
TOLERANCE = {"count": 0.1, "time": 0.5}
# Relative errors that a curve may have by chance: residuals below them do not tell one model from the other.
NOISE = {"count": 0.01, "time": 0.1}
# A logarithm is refused if a bend upwards explains so many times more than what is left (F). A power bends so.
BENT = 10.0
# The exponent of a power through log2 of 2 to 16 is 0.66, and it falls from there: a steeper curve is none, however much noise there is.
STEEPEST_LOGARITHM = 0.75
FEWEST = 4  # points of a fit
# Quantiles of Student's t for 95 %, by degrees of freedom
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]


class Fit:
    """An exponent, and half the width of its 95 % range."""

    def __init__(self, exponent, half):
        self.exponent, self.half = exponent, half


def line(points):
    """Least squares: offset, slope, and the standard error of the slope."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    offset = mean_y - slope * mean_x
    squares = sum((y - offset - slope * x) ** 2 for x, y in points)
    return offset, slope, math.sqrt(squares / (n - 2) / spread) if n > 2 else 0.0


def power(points):
    """y = a x^b, in logarithms of both."""
    _, slope, error = line([(math.log(x), math.log(y)) for x, y in points])
    freedom = len(points) - 2
    student = STUDENT[min(freedom, len(STUDENT)) - 1] if freedom > 0 else 0.0
    return Fit(slope, student * error)


def weighted(points, parts):
    """Least squares of relative errors: y is the sum of `parts` functions of x. Their factors, and the sum of squares. By the normal
    equations, which are good enough for three functions."""
    rows = [[part(x) / y for part in parts] for x, y in points]
    n = len(parts)
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(n)] + [sum(row[i] for row in rows)] for i in range(n)]
    for i in range(n):
        for j in range(n):
            if j != i:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i])]
    factors = [matrix[i][n] / matrix[i][i] for i in range(n)]
    return factors, sum((sum(f * cell for f, cell in zip(factors, row)) - 1) ** 2 for row in rows)


def is_logarithm(points, noise):
    """y = a + c ln x, unless the curve bends upwards over ln x."""
    chance = len(points) * noise ** 2
    _, straight = weighted(points, [lambda x: 1, math.log])
    factors, bent = weighted(points, [lambda x: 1, math.log, lambda x: math.log(x) ** 2])
    gain = (straight - bent) * max(1, len(points) - 3) / (bent + chance)
    return factors[2] <= 0 or gain < BENT


def upper_half(points):
    """What large jobs will see: a part that grows faster is hidden at first by one that is constant, and x - 1 is not linear at first."""
    return points[-max(FEWEST, (len(points) + 1) // 2):]


def usable(points):
    """In order of x, without what is 0: one host sends nothing to others."""
    return sorted((x, y) for x, y in points if x > 0 and y > 0)


class Growth:
    """What is known of a curve. `held` is the fit that is held against promises: of the upper half, for times of all points, because four
    of them say little in noise."""

    def __init__(self, points, kind="count"):
        if kind not in TOLERANCE:
            raise ValueError(f"'{kind}' is no kind of curve: {' or '.join(TOLERANCE)}")
        self.kind, self.points = kind, usable(points)
        self.all = self.held = Fit(0.0, 0.0)
        self.is_logarithm = False
        if len(self.points) >= FEWEST:
            self.all = power(self.points)
            self.held = power(upper_half(self.points)) if kind == "count" else self.all
            self.is_logarithm = self.held.exponent <= STEEPEST_LOGARITHM and is_logarithm(self.points, NOISE[kind])
        elif any(y > 0 for _, y in points):
            raise ValueError(f"{len(self.points)} points are too few to fit an exponent: {FEWEST} at least")

    def least(self):
        return self.held.exponent - (self.held.half if self.kind == "time" else 0.0)

    def is_constant(self):
        return self.least() <= TOLERANCE[self.kind]

    def keeps(self, promise):
        if promise == "logarithmic":
            return self.is_constant() or self.is_logarithm
        return self.least() <= PROMISES[promise] + TOLERANCE[self.kind]

    def word(self):
        if self.held.exponent <= TOLERANCE[self.kind]:
            return "constant"
        return "logarithmic" if self.is_logarithm else "power"

    def text(self):
        """For the table: the exponent that is held against the promise, its range, and what the curve looks like."""
        exponent = round(self.held.exponent, 2) + 0.0
        return f"{exponent:.2f} ± {self.held.half:.2f}, {self.word()}"
