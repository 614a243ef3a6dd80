"""`python -m swarmgate.control`: what the data process starts beside itself."""

import argparse
import sys
from pathlib import Path

from swarmgate.control.importer import give_way
from swarmgate.control.process import Options, main


def _options(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="swarmgate.control", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="folder of the data process")
    parser.add_argument("--operator", required=True, help="HOST:PORT of the operator port; port 0 takes a free one")
    told = parser.parse_args(arguments)
    host, _, port = told.operator.rpartition(":")
    return Options(told.state, host.removeprefix("[").removesuffix("]"), int(port))


give_way()
sys.exit(main(_options(sys.argv[1:])))
