// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
)

// Setting is the name of the budget's limit, as users know it.
const Setting = "limit_mib of memory_budget"

// Error says which bound an account has reached. Sizes are in bytes.
type Error struct {
	// Setting is the name of the bound, and Limit its value.
	Setting string
	Limit   int64
	// Used is what all groups hold, and InGroup what the group of that name holds. They are
	// empty where the account's own bound is reached.
	Used    int64
	Group   string
	InGroup int64
	// Account is what the account holds, with the memory that it asked for.
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
