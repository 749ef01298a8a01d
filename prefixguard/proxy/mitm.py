"""The few parts of mitmproxy that the proxy is made of.

`mitmproxy.addons` imports every addon that mitmproxy has, with a web framework,
an LDAP client and more; that is half of the time that the proxy needs to start.
Here its folder is put in place of the package, so that only what is named is
imported.
"""

from __future__ import annotations

import importlib.util
import sys
import types

_PACKAGE = "mitmproxy.addons"


def _without_its_init() -> None:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or _PACKAGE in sys.modules:
        return
    package = types.ModuleType(_PACKAGE)
    package.__path__ = list(spec.submodule_search_locations or ())
    package.__spec__ = spec
    sys.modules[_PACKAGE] = package


_without_its_init()

from mitmproxy.addons.core import Core  # noqa: E402
from mitmproxy.addons.disable_h2c import DisableH2C  # noqa: E402
from mitmproxy.addons.next_layer import NextLayer  # noqa: E402
from mitmproxy.addons.proxyserver import Proxyserver  # noqa: E402
from mitmproxy.addons.tlsconfig import TlsConfig  # noqa: E402
from mitmproxy.master import Master  # noqa: E402
from mitmproxy.options import Options  # noqa: E402

from prefixguard.proxy.streams import install  # noqa: E402

install()

__all__ = ["Core", "DisableH2C", "Master", "NextLayer", "Options", "Proxyserver", "TlsConfig"]
