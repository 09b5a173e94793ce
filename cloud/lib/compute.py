"""Run nova-compute with the fake driver of this cloud.

Nova only loads drivers named under nova.virt, so the driver is put there.
"""

import sys

import nova.virt
from cloud_fakes import virt
from nova.cmd import compute

sys.modules["nova.virt.cloud_fakes"] = virt
nova.virt.cloud_fakes = virt

sys.exit(compute.main())
