# SPDX-License-Identifier: Apache-2.0
"""Real processes under real trouble, watched all the time: ``make soak MINUTES=15``.

The API over HTTP, RabbitMQ, three managers, PostgreSQL or MariaDB, and a simulated cloud in a file that all of them
share. Clients use every type; others wait for their turn, have leases that are prolonged by themselves, and book,
change and delete series; an operator opens maintenance windows. Surgeons swap hosts of all these leases, split and
merge them, and what nobody uses is released. Managers are killed, stopped and asked to end; calls of the cloud fail;
hosts go down; with ``CUT=20`` the connections of all these processes to the database are cut each 20 seconds. A
watcher looks at the calendar and at the cloud several times a second, and at the end everything has to come to rest,
and all that wait have to be served (``turns.py`` says what must hold of them, and ``operations.py`` what must hold of
surgery).
"""
