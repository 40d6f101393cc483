// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
)

// Setting is the name of the budget's limit, as users know it.
const Setting = "limit_mib of memory_budget"

// Error names the bound that an account has reached. Sizes are in bytes.
type Error struct {
	// Setting is the name of the bound, and Limit its value.
	Setting string
	Limit   int64
	// Used is the size of all groups, and InGroup the size of the group with that name. They are empty if the account's
	// own bound is reached.
	Used    int64
	Group   string
	InGroup int64
	// Account is the size of the account, with the requested bytes.
	Account int64
}

func (e *Error) Error() string {
	if e.Group == "" {
		return fmt.Sprintf("%s is reached (%d bytes)", e.Setting, e.Limit)
	}
	return fmt.Sprintf("%s is reached: %s of %s are in use, %s of these by %s and %s by this one",
		e.Setting, mebibytes(e.Used), mebibytes(e.Limit), mebibytes(e.InGroup), e.Group, mebibytes(e.Account))
}

// errClosed: the account was closed before.
var errClosed = errors.New("the memory account is closed")

func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
