"""Folders on network file systems are refused, with the mount, its type and what to do instead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphstore import InvalidError
from graphstore.ledger.mounts import mount_of, refuse_network

MOUNTS = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
40 22 0:40 / /team rw,relatime shared:7 - nfs4 server:/team rw,vers=4.2
41 40 8:1 / /team/local rw,relatime - xfs /dev/sda1 rw
42 22 0:42 / /mnt/two\040words\134here rw - fuse.sshfs me@host:/ rw
43 22 0:43 / /mnt/late rw - autofs systemd-1 rw
44 43 0:44 / /mnt/late rw - cifs //server/share rw
45 22 0:45 / /mnt/hidden rw - 9p host rw
46 45 8:2 / /mnt/hidden rw - btrfs /dev/sdb rw
a line that is not a mount
"""


@pytest.mark.parametrize(
    ("folder", "point", "kind"),
    [
        ("/team", "/team", "nfs4"),
        ("/team/made/later/memory.gs", "/team", "nfs4"),
        ("/mnt/two words\\here/memory.gs", "/mnt/two words\\here", "fuse.sshfs"),
        ("/mnt/late/memory.gs", "/mnt/late", "cifs"),
    ],
)
def test_a_folder_on_a_network_file_system_is_refused(folder, point, kind):
    with pytest.raises(InvalidError) as refused:
        refuse_network(Path(folder), MOUNTS)

    assert f"({kind}, mounted at {point})" in str(refused.value)
    assert "graphstore serve" in str(refused.value)


@pytest.mark.parametrize(
    "folder",
    ["/", "/home/memory.gs", "/teammate/memory.gs", "/team/local/memory.gs", "/mnt/hidden/memory.gs"],
)
def test_a_folder_on_a_local_disk_passes(folder):
    refuse_network(Path(folder), MOUNTS)


def test_symbolic_links_are_followed(tmp_path):
    real = Path(os.path.realpath(tmp_path))
    (real / "net").mkdir()
    (real / "link").symlink_to(real / "net")
    mounts = f"{MOUNTS}50 22 0:50 / {str(real / 'net').replace(' ', chr(92) + '040')} rw - lustre far rw\n"

    with pytest.raises(InvalidError, match="lustre"):
        refuse_network(real / "link" / "memory.gs", mounts)


def test_optional_fields_of_an_entry_are_skipped():
    mount = mount_of("/a/b", "1 0 0:1 / /a rw shared:1 master:2 propagate_from:3 unbindable - afs x rw")

    assert mount is not None
    assert ("/a", "afs") == mount


def test_the_folder_of_this_test_passes(tmp_path):
    refuse_network(tmp_path / "memory.gs")
