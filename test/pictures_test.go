// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/kit/browser"
)

// pictureShown matches a picture in a page of the documentation.
var pictureShown = regexp.MustCompile(`!\[[^\]]+\]\(((?:docs/)?pictures/([a-z0-9-]+)\.png)\)`)

// docs/pictures.md and the README show existing pictures, and each is one that a test takes: `make pictures` takes it again.
func TestThePagesOfPicturesShowThoseThatTestsTake(t *testing.T) {
	taken := map[string][]string{} // the tests, by the name of the picture
	for test, pictures := range picturesOfTests(t) {
		for _, picture := range pictures {
			taken[picture] = append(taken[picture], test)
		}
	}
	shown := map[string]bool{}
	for _, page := range []string{"../docs/pictures.md", "../README.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		matches := pictureShown.FindAllStringSubmatch(string(text), -1)
		assert.NotEmpty(t, matches, page)
		for _, match := range matches {
			shown[match[2]] = true
			assert.Len(t, taken[match[2]], 1, "%s: one test takes the picture %s", page, match[2])
			picture, err := os.ReadFile(filepath.Join(filepath.Dir(page), match[1]))
			if !assert.NoError(t, err, page) {
				continue
			}
			assert.LessOrEqual(t, len(picture), browser.MaxPictureBytes, match[1])
			_, err = png.Decode(bytes.NewReader(picture))
			assert.NoError(t, err, match[1])
		}
	}
	for name, tests := range taken {
		assert.True(t, shown[name], "%s takes the picture %s, and no page shows it", tests, name)
	}
	kept, err := filepath.Glob("../docs/pictures/*")
	require.NoError(t, err)
	for _, file := range kept {
		assert.NotEmpty(t, taken[strings.TrimSuffix(filepath.Base(file), ".png")], "no test takes the picture %s", file)
	}
}

// make pictures runs all tests that take pictures.
func TestMakePicturesRunsTheTestsThatTakePictures(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^PICTURE_TESTS := (.*)$`).FindSubmatch(makefile)
	require.NotNil(t, line)
	want := slices.Sorted(maps.Keys(picturesOfTests(t)))
	assert.Equal(t, "^("+strings.Join(want, "|")+")$$", string(line[1]))
}

// picturesOfTests returns the names of the pictures that each test of this folder takes, itself or by the functions that it uses.
func picturesOfTests(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	pictures, uses := map[string][]string{}, map[string][]string{} // by the name of the function
	for _, file := range files {
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range source.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Recv != nil {
				continue
			}
			name := function.Name.Name
			ast.Inspect(function, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					uses[name] = append(uses[name], n.Name)
				case *ast.CallExpr:
					if picture, ok := pictureOf(n); ok {
						pictures[name] = append(pictures[name], picture)
					}
				}
				return true
			})
		}
	}
	found := map[string][]string{}
	for test := range uses {
		if !strings.HasPrefix(test, "Test") {
			continue
		}
		reached := map[string]bool{test: true}
		for next := []string{test}; len(next) > 0; next = next[1:] {
			found[test] = append(found[test], pictures[next[0]]...)
			for _, used := range uses[next[0]] {
				if uses[used] != nil && !reached[used] {
					reached[used] = true
					next = append(next, used)
				}
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, pictures []string) bool { return len(pictures) == 0 })
	return found
}

// pictureOf returns the name of the picture that a call takes.
func pictureOf(call *ast.CallExpr) (name string, ok bool) {
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	if !isMethod || len(call.Args) < 2 || method.Sel.Name != "Picture" && method.Sel.Name != "SavePicture" {
		return "", false
	}
	literal, isLiteral := call.Args[1].(*ast.BasicLit)
	if !isLiteral {
		return "", false
	}
	name, err := strconv.Unquote(literal.Value)
	return name, err == nil
}
