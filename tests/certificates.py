"""Certificates for `localhost` and 127.0.0.1, made for one run by an authority that is made for it, too."""

import shutil
import subprocess

import pytest

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def made_in(folder, names=("leaf",), expired=(), own=()):
    """
    `ca.pem`, and for each name its `.pem` and `.key`, in this folder; skips where there is no openssl.

    Those of `expired` were good until yesterday, those of `own` are signed by themselves.
    """
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *KEY, "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    (folder / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in own:
        files = ("-keyout", f"{name}.key", "-out", f"{name}.pem")
        openssl("req", "-x509", *KEY, *files, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    for name in (*names, *expired):
        days = "-1" if name in expired else "2"
        openssl("req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", days, "-extfile", "ext")
        openssl("x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.pem")
    return folder
