"""oslo.messaging on native threads.

It takes eventlet along unless it is told otherwise before its import. Libraries below it still look whether
eventlet is installed; that import patches nothing, but warns, and the warning is not for our users.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
    import oslo_messaging

__all__ = ["oslo_messaging"]
