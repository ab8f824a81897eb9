#!/usr/bin/env python3
"""Make the pictures of this folder, the same ones every time.

    make.py [folder]

sparks.pgm  512 x 384, grey: hot discs and rings on cold ground, for heat
coals.ppm   256 x 256, colour: glowing grains, for heat

Integers only, and a random number generator of its own, so that the bytes do
not depend on the machine or the version of Python.
"""
import pathlib
import sys


class Random:
    """xorshift32."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        x = self.state
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self.state = x
        return x % n


def sparks(width, height):
    """Discs and rings of different heat, as rows of samples."""
    random = Random(20100912)
    rows = [bytearray(16 for _ in range(width)) for _ in range(height)]
    for number in range(60):
        cx, cy = random.below(width), random.below(height)
        radius = 4 + random.below(36)
        inner = radius - 3 if number % 3 == 0 else 0
        heat = 96 + random.below(160)
        for y in range(max(0, cy - radius), min(height, cy + radius + 1)):
            for x in range(max(0, cx - radius), min(width, cx + radius + 1)):
                far = (x - cx) ** 2 + (y - cy) ** 2
                if inner * inner <= far <= radius * radius:
                    rows[y][x] = heat
    return rows


def coals(side):
    """Grains: each pixel belongs to the nearest of some random centres."""
    random = Random(19640229)
    centres = [
        (random.below(side), random.below(side), 40 + random.below(216))
        for _ in range(48)
    ]
    rows = []
    for y in range(side):
        row = bytearray()
        for x in range(side):
            glow = min((x - cx) ** 2 + (y - cy) ** 2 for cx, cy, _ in centres)
            heat = min(
                ((x - cx) ** 2 + (y - cy) ** 2, h) for cx, cy, h in centres
            )[1]
            heat = max(0, heat - glow // 4)
            row += bytes((heat, heat * heat // 400, heat * heat // 2000))
        rows.append(row)
    return rows


def main():
    folder = pathlib.Path(__file__).parent
    if len(sys.argv) > 1:
        folder = pathlib.Path(sys.argv[1])
    grey = b"P5\n# made by make.py\n512 384\n255\n" + b"".join(sparks(512, 384))
    (folder / "sparks.pgm").write_bytes(grey)
    colour = b"P6\n256 256\n255\n" + b"".join(coals(256))
    (folder / "coals.ppm").write_bytes(colour)


if __name__ == "__main__":
    main()
