# SPDX-License-Identifier: Apache-2.0
"""``make soak MINUTES=15``; SEED, DATABASE and CUT as well."""

from __future__ import annotations

import argparse
import sys

from tests.soak.run import soak


def main() -> int:
    """Run; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, help="of users and trouble; what meets what differs all the same")
    parser.add_argument("--database", choices=("postgresql", "mariadb"), default="postgresql")
    parser.add_argument("--cut", type=float, help="cut the service's connections to the database each so many seconds")
    options = parser.parse_args()
    report = soak(options.minutes, database=options.database, seed=options.seed, cut=options.cut)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
