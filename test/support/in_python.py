"""Two bands from two, as integers."""

import marketplace_step

marketplace_step.pixels(lambda a, b: (a > b, a / b))
