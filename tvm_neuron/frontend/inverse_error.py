"""The inverse of the error function: numbers of M. Giles, "Approximating the erfinv function" (2010), for float32.

erfinv(x) = x p(w) with w = -log((1 - x)(1 + x)): p is the polynomial `CENTRE` of w - `SHIFT` below `EDGE`, and `TAIL`
of sqrt(w) - `TAIL_SHIFT` above. The highest power comes first.
"""

EDGE, SHIFT, TAIL_SHIFT = 5.0, 2.5, 3.0
CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip
