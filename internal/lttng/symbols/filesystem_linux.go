// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// kernelFileSystems are file systems of the kernel. Reading their files has effects: that of /proc/kmsg removes messages.
var kernelFileSystems = []uint32{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.SELINUX_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC,
	unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC, configfsMagic,
}

// configfsMagic is CONFIGFS_MAGIC of fs/configfs/mount.c, which package unix does not have.
const configfsMagic = 0x62656570

// checkFileSystem returns an error if the file is one of the kernel, wherever its file system is mounted.
func checkFileSystem(file *os.File) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &stat); err != nil {
		return fmt.Errorf("file system: %w", err)
	}
	if slices.Contains(kernelFileSystems, uint32(stat.Type)) {
		return fmt.Errorf("expected no file of the kernel, got one in a file system of type 0x%x", uint32(stat.Type))
	}
	return nil
}
