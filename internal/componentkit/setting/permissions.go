// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"io/fs"
	"strconv"
)

// The permissions that the collector itself needs for its files and directories.
const (
	OwnerReadsAndWrites = 0o600
	OwnerReaches        = 0o700
)

// Permissions parses the permissions of a field, an octal number that includes those of least.
func Permissions(field, value string, least fs.FileMode) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(value, 8, 32)
	if given := fs.FileMode(mode); err != nil || given&fs.ModePerm != given || given&least != least {
		return 0, fmt.Errorf("%s is %q: set it to an octal number from %#o to 0777 that has the owner's bits of %#o", field, value, least, least)
	}
	return fs.FileMode(mode), nil
}
