# SPDX-License-Identifier: Apache-2.0
"""Run nova-compute with the fake driver of this cloud.

Nova only loads drivers named under nova.virt, so the driver is put there.
"""

import sys

# Before everything else of Nova: it decides how threads are made, and takes it ill if that was decided already.
from nova.cmd import compute  # isort: split

import nova.virt
from cloud_fakes import virt

sys.modules["nova.virt.cloud_fakes"] = virt
nova.virt.cloud_fakes = virt

sys.exit(compute.main())
