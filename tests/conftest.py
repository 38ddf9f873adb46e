"""Settings of all tests."""

import os

# Every kernel is compiled at its first call, and what hinders a code file is an error, not a reason for another
# way. Tests of the start-up set these for themselves.
os.environ.setdefault("JITTOK_BACKGROUND", "0")
os.environ.setdefault("JITTOK_DEBUG", "1")
