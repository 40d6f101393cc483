// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import "fmt"

// ReturnCode is how a request fared ("返回码").
type ReturnCode uint32

// The return codes of the document. Any other is a failure, and an end.
const (
	Done               ReturnCode = 0x00 // all succeeded; an end
	Continued          ReturnCode = 0x01 // a part succeeded, more replies follow
	Failed             ReturnCode = 0x10 // an unknown error; an end
	VersionUnsupported ReturnCode = 0x11 // of the protocol; an end
	TypeUnsupported    ReturnCode = 0x12 // the request's; an end
)

// ends says that no reply follows.
func (c ReturnCode) ends() bool { return c != Continued }

// succeeded says that the data is what was asked for.
func (c ReturnCode) succeeded() bool { return c == Done || c == Continued }

func (c ReturnCode) String() string { return fmt.Sprintf("%#02x", uint32(c)) }
