"""``python -m treegram.cli`` is ``treegram``."""

import sys

from treegram.cli import main

sys.exit(main())
