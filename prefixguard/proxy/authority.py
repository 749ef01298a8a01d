"""The certificate authority of forward mode, and the bundle of roots that clients must trust.

The authority is made on this machine on first use, lies in a private folder
and signs only for hosts that the user's own agent calls.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prefixguard.errors import InputError

# mitmproxy looks its authority up by this name in its configuration folder.
_BASENAME: Final = "mitmproxy"
_KEY_SIZE: Final = 2048


def ensure_authority(folder: Path) -> Path:
    """The authority's certificate (PEM), made with mode 0700 on first use. Raises InputError."""
    from mitmproxy.certs import CertStore

    certificate = folder / f"{_BASENAME}-ca-cert.pem"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / f"{_BASENAME}-ca.pem").exists():
            CertStore.create_store(
                folder, _BASENAME, _KEY_SIZE, organization="PrefixGuard", cn="PrefixGuard (this machine only)"
            )
    except OSError as error:
        raise InputError(
            f"{folder}: the certificate authority cannot be kept here: {error.strerror}"
        ) from error
    return certificate


def roots(environ: Mapping[str, str]) -> Path:
    """The file of roots that this machine trusts: SSL_CERT_FILE, the system's, or else certifi's."""
    named = environ.get("SSL_CERT_FILE")
    if named:
        if not Path(named).is_file():
            raise InputError(f"SSL_CERT_FILE names {named}, which is no file")
        return Path(named)
    system = ssl.get_default_verify_paths().cafile
    if system and os.path.getsize(system):
        return Path(system)
    import certifi

    return Path(certifi.where())


def write_bundle(folder: Path, certificate: Path, environ: Mapping[str, str]) -> Path:
    """One file with everything a client must trust: the machine's roots and our authority.

    Clients replace their roots by what SSL_CERT_FILE names, so the bundle must
    hold both. An existing NODE_EXTRA_CA_CERTS is taken in.
    """
    parts = [roots(environ).read_bytes()]
    extra = environ.get("NODE_EXTRA_CA_CERTS")
    if extra and Path(extra).is_file():
        parts.append(Path(extra).read_bytes())
    parts.append(certificate.read_bytes())
    bundle = folder / "bundle.pem"
    draft = folder / f"bundle.pem.{os.getpid()}"
    draft.write_bytes(b"\n".join(part.rstrip() for part in parts) + b"\n")
    os.replace(draft, bundle)
    return bundle
