# SPDX-License-Identifier: Apache-2.0
"""Serve one WSGI application: serve.py HOST PORT THREADS MODULE [ARGUMENT...]

What follows the module becomes the command line that the application reads
its own options from.
"""

import importlib
import sys


def main():
    host, port, threads, module = sys.argv[1:5]
    sys.argv = [module] + sys.argv[5:]
    application = importlib.import_module(module).application
    import waitress

    waitress.serve(
        application,
        host=host,
        port=int(port),
        threads=int(threads),
        channel_timeout=300,
        connection_limit=500,
        backlog=1024,
        ident=None,
    )


main()
