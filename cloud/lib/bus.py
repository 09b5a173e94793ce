# SPDX-License-Identifier: Apache-2.0
"""Wait for consumers: bus.py PORT PASSWORD SECONDS QUEUE... (or EXCHANGE/)."""

import sys
import time

import amqp


def there(channel, name):
    try:
        if name.endswith("/"):
            channel.exchange_declare(name[:-1], "fanout", passive=True)
            return True
        return channel.queue_declare(name, passive=True).consumer_count > 0
    except amqp.NotFound:
        return False


def main():
    port, password, seconds = sys.argv[1:4]
    missing = set(sys.argv[4:])
    connection = amqp.Connection(f"127.0.0.1:{port}", userid="cloud", password=password)
    connection.connect()
    end = time.monotonic() + float(seconds)
    while True:
        for name in sorted(missing):
            # The broker closes a channel that asked for what is not there.
            channel = connection.channel()
            if there(channel, name):
                missing.discard(name)
            if channel.is_open:
                channel.close()
        if not missing or time.monotonic() > end:
            break
        time.sleep(0.2)
    connection.close()
    if missing:
        sys.exit("nothing listens on: " + ", ".join(sorted(missing)))


main()
