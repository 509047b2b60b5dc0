"""Names an argument after no parameter."""

import marketplace_step

marketplace_step.pixels(lambda green: green)
