// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package load

import "fmt"

// exceptions is the number of exception classes.
const exceptions = 8

// methodsPerClass is the number of methods in a class.
const methodsPerClass = 10

// Signature returns the signature of function i.
func Signature(i int) string {
	return fmt.Sprintf("load/part%d/Service%d.method%d;1;(I)V", i/1000, i/methodsPerClass, i%methodsPerClass)
}

// FunctionName returns the qualified name of function i.
func FunctionName(i int) string {
	return fmt.Sprintf("load.part%d.Service%d.method%d", i/1000, i/methodsPerClass, i%methodsPerClass)
}

// ExceptionName returns the class of exception i.
func ExceptionName(i int) string { return fmt.Sprintf("load.Failure%d", i) }

// ThreadName returns the name of thread i.
func ThreadName(i int) string { return fmt.Sprintf("load-%d", i) }

// markerKey is the key of all markers. The value is the marker's number.
const markerKey = "load"
