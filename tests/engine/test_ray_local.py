"""The process that starts a local Ray cluster, with a fake Ray."""

import os
import sys

from talka.engine.on_ray import local_cluster as ray_local

# Like Ray, it makes its folder readable for all users.
FAKE_RAY = """#!/bin/sh
for option; do
    case $option in --temp-dir=*) mkdir -p "${option#*=}"; chmod 777 "${option#*=}" ;; esac
done
echo "ray start --address='127.0.0.2:1234'"
"""


def test_the_folder_around_the_folder_of_ray_stays_private(tmp_path, monkeypatch):
    fake = tmp_path / "python"
    fake.write_text(FAKE_RAY)
    fake.chmod(0o700)
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(sys, "executable", str(fake))
    assert ray_local._start(str(folder), 1, []) == {"address": "127.0.0.2:1234"}
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir() if path.stat().st_mode & 0o002] == ["ray"]
