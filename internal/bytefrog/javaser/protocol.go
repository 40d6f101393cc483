// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import "math"

// Constants of java.io.ObjectStreamConstants.
const (
	streamMagic   = 0xACED
	streamVersion = 5

	tcNull         = 0x70
	tcReference    = 0x71
	tcClassDesc    = 0x72
	tcObject       = 0x73
	tcString       = 0x74
	tcBlockData    = 0x77
	tcEndBlockData = 0x78
	tcLongString   = 0x7C

	scWriteMethod  = 0x01
	scSerializable = 0x02

	baseWireHandle = 0x7E0000
)

// maxFields is the maximum number of fields of a class. The stream has it as a short.
const maxFields = math.MaxInt16

// The class java.util.ArrayList: its only field is the size. Its writeObject adds the capacity as block data, and the
// elements.
const (
	arrayListClass            = "java.util.ArrayList"
	arrayListSerialVersionUID = 8683452581122892189
	arrayListSizeField        = "size"
	arrayListBlockSize        = 4
)

// primitiveSizes has the size in bytes of a value of each primitive type in the stream.
var primitiveSizes = map[byte]int{'B': 1, 'C': 2, 'D': 8, 'F': 4, 'I': 4, 'J': 8, 'S': 2, 'Z': 1}
