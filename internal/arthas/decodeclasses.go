// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

// The results of commands that list classes and methods.

func (r *reader) classes() *Classes {
	var c Classes
	for key := range r.object("classes") {
		switch string(key) {
		case "classNames":
			c.Names = r.nameList()
		case "classInfo":
			c.Detail = r.class()
		case "detailed", "withField", "segment", "matchedClassLoaders", "classLoaderClass":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &c
}

func (r *reader) nameList() (names []string) {
	for range r.array("a list of names") {
		names = append(names, r.name("a name"))
	}
	return names
}

func (r *reader) class() *Class {
	var c Class
	for key := range r.object("a class") {
		switch string(key) {
		case "name":
			c.Name = r.name("the name of a class")
		case "codeSource":
			c.CodeSource = r.text("a location")
		case "modifier":
			c.Modifier = r.name("modifiers")
		case "classLoaderHash":
			c.LoaderHash = r.name("the hash of a class loader")
		case "classloader":
			c.Loaders = r.nameList()
		case "interfaces":
			c.Interfaces = r.nameList()
		case "superClass":
			c.Supers = r.nameList()
		case "interface":
			c.Interface = r.boolean("true or false")
		case "synthetic":
			c.Synthetic = r.boolean("true or false")
		default:
			r.skip()
		}
	}
	return &c
}

func (r *reader) methodResult() *Method {
	var m Method
	for key := range r.object("a method") {
		switch string(key) {
		case "methodInfo":
			r.method(&m)
		case "detail", "matchedClassLoaders", "classLoaderClass":
			r.skip()
		default:
			r.common(key)
		}
	}
	return &m
}

func (r *reader) method(m *Method) {
	for key := range r.object("a method") {
		switch string(key) {
		case "declaringClass":
			m.Class = r.name("the name of a class")
		case "methodName":
			m.Name = r.name("the name of a method")
		case "descriptor":
			m.Descriptor = r.name("a descriptor")
		case "constructor":
			m.Constructor = r.boolean("true or false")
		case "modifier":
			m.Modifier = r.name("modifiers")
		case "returnType":
			m.ReturnType = r.name("a type")
		case "parameters":
			m.Parameters = r.nameList()
		case "annotations", "exceptions", "classLoaderHash":
			r.skip()
		default:
			r.ignore()
		}
	}
}
