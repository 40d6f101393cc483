// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import "fmt"

// ReturnCode is the result of a request ("返回码").
type ReturnCode uint32

// The return codes of the document. Any other code is a failure that ends the request.
const (
	Done               ReturnCode = 0x00 // success; ends the request
	Continued          ReturnCode = 0x01 // partial success; more replies follow
	Failed             ReturnCode = 0x10 // an unknown error; ends the request
	VersionUnsupported ReturnCode = 0x11 // unsupported version of the protocol; ends the request
	TypeUnsupported    ReturnCode = 0x12 // unsupported request type; ends the request
)

// ends reports whether no reply follows.
func (c ReturnCode) ends() bool { return c != Continued }

// succeeded reports whether the data are the requested ones.
func (c ReturnCode) succeeded() bool { return c == Done || c == Continued }

func (c ReturnCode) String() string { return fmt.Sprintf("%#02x", uint32(c)) }
