"""A certificate authority for tests, and a server's certificate that it signed."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
_SIGNS = ("key_cert_sign", "crl_sign")
_DAY = datetime.timedelta(days=1)


def make_authority(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """The authority as a file, and the TLS context of a server on this machine and on two names."""
    authority_key, server_key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "upstream authority")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
        )

    authority = (
        builder(issuer, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{name: name in _SIGNS for name in _USES}), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    hosts = [x509.DNSName(name) for name in ("localhost", "model.invalid", "other.invalid")]
    names = x509.SubjectAlternativeName([*hosts, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server = (
        builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), server_key)
        .add_extension(names, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = folder / "upstream-authority.pem"
    file.write_bytes(authority.public_bytes(pem))
    chain = folder / "server.pem"
    chain.write_bytes(
        server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + server.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return file, context
