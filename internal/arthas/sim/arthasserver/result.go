// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

// result is a result as the server sends it.
type result map[string]any

func failed(message string) result { return result{"state": "FAILED", "message": message} }

// itemsOf is the number of items that a result counts for: the elements of its own lists and maps.
func itemsOf(r result) int {
	n := 0
	for name, value := range r {
		switch v := value.(type) {
		case []any:
			n += len(v)
		case result:
			if name == "memoryInfo" || name == "threadStateCount" || name == "jvmInfo" {
				n += len(v)
			}
		}
	}
	return max(1, n)
}
