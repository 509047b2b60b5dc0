"""(A - B) / (A + B) of two bands, as Float32: the pixels of the kit's own step."""

import marketplace_step

marketplace_step.pixels(lambda bandA, bandB: (bandA - bandB) / (bandA + bandB), description="normalized difference")
