"""One number for a whole block."""

import marketplace_step

marketplace_step.pixels(lambda band: band.mean())
