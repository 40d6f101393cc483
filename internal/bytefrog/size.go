// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

// DataSize returns the size of the message at the front of b, including call events. It does not decode the message and
// allocates nothing. 0 without an error means that b ends inside it. Errors are the ones of DecodeData.
func DataSize(b []byte, maxString int) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	switch t := MessageType(b[0]); t {
	case TypeMethodEntry, TypeMethodExit, TypeException, TypeExceptionBubble:
		if n := EventSize(t); n <= len(b) {
			return n, nil
		}
		return 0, nil
	case TypeMapThreadName:
		return stringEnd(b, mapThreadNameFixed, maxString)
	case TypeMapMethod:
		return stringEnd(b, mapMethodFixed, maxString)
	case TypeMapException:
		return stringEnd(b, mapExceptionFixed, maxString)
	case TypeError:
		return stringEnd(b, errorFixed, maxString)
	case TypeMarker:
		key, err := stringEnd(b, markerFixed, maxString)
		if key == 0 || err != nil {
			return 0, err
		}
		return stringEnd(b, key, maxString)
	default:
		return 0, wrongType(b, expectedData)
	}
}
