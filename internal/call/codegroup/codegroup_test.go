// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package codegroup

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheGroupOfAFunction(t *testing.T) {
	for _, test := range []struct{ what, function, file, want string }{
		{"a Java method has the first three parts of its package", "org.apache.maven.cli.MavenCli.doMain", "MavenCli.java", "org.apache.maven"},
		{"a short package is whole", "java.util.HashMap.put", "", "java.util"},
		{"a package of one part", "shop.Cart.add", "", "shop"},
		{"a class without a package", "Cart.add", "Cart.java", "Cart"},
		{"a constructor", "org.codehaus.plexus.DefaultPlexusContainer.<init>", "", "org.codehaus.plexus"},
		{"an initializer", "a.b.C.<clinit>", "", "a.b"},
		{"an inner class and a lambda", "com.example.shop.Cart$Item.lambda$add$0", "", "com.example.shop"},
		{"a hidden class", "com.example.Cart$$Lambda/0x1.apply", "", "com.example"},
		{"letters of other scripts", "店.注文.Cart.追加", "", "店.注文"},
		{"a Ruby method has its file and folder", "Outer::Widget.build", "/srv/app/lib/shop/widget.rb", "shop/widget.rb"},
		{"a block of Ruby", "block in <main>", "prog.rb", "prog.rb"},
		{"a Ruby method without a file", "Array#each", "", "Array"},
		{"a C function has the folder of its source", "inflate", "/usr/src/zlib/inflate.c", "zlib"},
		{"a C function with only a file", "main", "main.c", "main.c"},
		{"an address in a library", "/usr/lib/libssl.so.3+0x1f20", "", "libssl.so.3"},
		{"a C++ function without a file has its namespace", "shop::Order::pay", "", "shop"},
		{"a C function without a file", "inflate", "", Other},
		{"a route", "GET /users.json", "", Other},
		{"a sentence", "Hello, world. Bye", "", Other},
		{"a number", "1.5", "", Other},
		{"dots", "..", "", Other},
		{"a dot at an end", "a.", "", Other},
		{"nothing", "", "", Other},
		{"markup", "<script>alert(1)</script>.x", "", Other},
	} {
		assert.Equal(t, test.want, Of(test.function, test.file), test.what)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("org.apache.maven.cli.MavenCli.doMain", "")
	f.Add("a::b+0x", "../x.rb")
	f.Fuzz(func(t *testing.T, function, file string) {
		assert.NotEmpty(t, Of(function, file))
	})
}
