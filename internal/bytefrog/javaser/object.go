// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javaser

import "fmt"

// Object is an object of a Serializable class.
type Object struct {
	// Class is the name with dots: "com.example.Settings".
	Class string
	// SerialVersionUID is declared by the class. Both sides must have the same.
	SerialVersionUID int64
	// Fields are all fields of the class that are neither static nor transient.
	// Marshal sorts them as the stream requires.
	Fields []Field
}

// Field is one field of an object. A nil Value is Java's null.
type Field struct {
	Name  string
	Type  string // as a descriptor: one of the constants Type…, or any "Lpackage/Class;"
	Value Value
}

// Field returns the field of that name; ok is false if there is none.
func (o Object) Field(name string) (f Field, ok bool) {
	for _, f := range o.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Value is the value of a field: one of Byte to Boolean, String, ArrayList, or nil.
type Value interface{ appendTo(w *writer) }

// The types of values. A String or ArrayList may be in a field of any class type; in Java the class decides whether it
// accepts the value.
type (
	Byte    int8
	Char    uint16 // one UTF-16 code unit
	Double  float64
	Float   float32
	Int     int32
	Long    int64
	Short   int16
	Boolean bool
	String  string
	// ArrayList is a java.util.ArrayList of Strings without null.
	ArrayList []string
)

// Descriptors of field types (JVM specification 4.3.2). TypeString and TypeList are the usual ones for String and
// ArrayList.
const (
	TypeByte    = "B"
	TypeChar    = "C"
	TypeDouble  = "D"
	TypeFloat   = "F"
	TypeInt     = "I"
	TypeLong    = "J"
	TypeShort   = "S"
	TypeBoolean = "Z"
	TypeString  = "Ljava/lang/String;"
	TypeList    = "Ljava/util/List;"
)

// Error has the position in a stream that this package cannot read.
type Error struct {
	Offset   int    // of the first wrong byte
	Expected string // the readable content
	Got      string // the actual content
}

func (e *Error) Error() string {
	return fmt.Sprintf("byte %d: expected %s, got %s", e.Offset, e.Expected, e.Got)
}
