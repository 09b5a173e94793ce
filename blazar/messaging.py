# SPDX-License-Identifier: Apache-2.0
"""oslo.messaging on native threads, without eventlet.

It takes eventlet along unless it is told otherwise before its import; libraries below it import eventlet wherever it
is installed (and it is, as a dependency of theirs), which puts hooks of its own into the process. Here it
counts as not installed.
"""

from __future__ import annotations

import sys
import warnings

sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
with warnings.catch_warnings():
    # The libraries warn their developers about their own deprecated parts: nothing that our users could act on.
    warnings.simplefilter("ignore")
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
    import oslo_messaging

__all__ = ["oslo_messaging"]
