"""A certificate authority for one run, and a server's certificate for the hosts of model APIs."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)
_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def make_authority(folder: Path, hosts: Sequence[str]) -> tuple[Path, ssl.SSLContext]:
    """The authority as a PEM file, and the TLS context of a server with all those names."""
    folder.mkdir(parents=True, exist_ok=True)
    own, theirs = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agents bench")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(own.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(issued_by, critical=False)
        )

    signs = x509.KeyUsage(**{name: name in ("key_cert_sign", "crl_sign") for name in _USES})
    authority = (
        builder(issuer, own)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(signs, critical=True)
        .sign(own, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in ("localhost", *hosts)])
    server = (
        builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), theirs)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(own, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file, chain = folder / "authority.pem", folder / "server.pem"
    file.write_bytes(authority.public_bytes(pem))
    key = theirs.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain.write_bytes(key + server.public_bytes(pem))
    chain.chmod(0o600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    context.set_alpn_protocols(["http/1.1"])
    return file, context
