// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import "fmt"

// Names returns n different names of loggers that look like real ones.
func Names(n int) []string {
	packages := []string{"com.example.shop.order", "com.example.shop.stock", "com.example.db", "org.example.net.http"}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s.Part%05d", packages[i%len(packages)], i)
	}
	return names
}
