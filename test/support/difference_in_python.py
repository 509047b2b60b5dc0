"""The later band minus the earlier one."""

import marketplace_step

marketplace_step.pixels(lambda a, b: b - a)
