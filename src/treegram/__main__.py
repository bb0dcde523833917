"""``python -m treegram`` is the command ``treegram``."""

import sys

from treegram.cli import main

sys.exit(main())
