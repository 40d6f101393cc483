// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// text is a piece of a file that a reader sees as one.
type text struct {
	// line is the number of its first line, from 1.
	line    int
	content string
}

// lineAt returns the number of the line of an offset in the content.
func (t text) lineAt(offset int) int {
	// A match may begin with the line end of the sentence before it.
	for offset < len(t.content) && strings.ContainsRune(" \t\n.;", rune(t.content[offset])) {
		offset++
	}
	return t.line + strings.Count(t.content[:offset], "\n")
}

// texts returns the texts of a file below root.
func (p place) texts(root, file string) ([]text, error) {
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	found, err := p.extract(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}

// whole returns a file as one text.
func whole(content string) ([]text, error) { return []text{{1, content}}, nil }

var (
	notProse = []*regexp.Regexp{
		regexp.MustCompile("(?ms)^ *```.*?^ *```$"),        // blocks of code
		regexp.MustCompile(`(?s)<!--.*?-->`),               // comments
		regexp.MustCompile("`[^`]*`"),                      // code, such as quoted log lines
		regexp.MustCompile(`\]\([^)\s]*\)`),                // targets of links
		regexp.MustCompile(`(?m)^(?:#.*|    .*|\|[-|]+)$`), // titles, indented code, and lines of tables without text
	}
	notComment = []*regexp.Regexp{
		regexp.MustCompile("`[^`\\n]*`"),              // code
		regexp.MustCompile(`"[^"\n]*"`),               // quotes
		regexp.MustCompile(`(?m)^\s*//(?:\t|   ).*$`), // indented code
	}
	notPage = []*regexp.Regexp{
		regexp.MustCompile(`(?s)\{\{.*?\}\}`), // actions of templates
		regexp.MustCompile(`(?s)<[^>]*>`),     // tags
	}
)

// prose returns the sentences of a page of Markdown, a text for each paragraph, item and cell.
func prose(content string) ([]text, error) { return paragraphs(blanked(content, notProse)), nil }

// page returns the sentences of a page of HTML.
func page(content string) ([]text, error) { return paragraphs(blanked(content, notPage)), nil }

// unreleased returns the sentences of the changelog up to the first release.
func unreleased(content string) ([]text, error) {
	before, after, found := strings.Cut(content, "\n## [Unreleased]")
	if !found {
		return nil, fmt.Errorf("expected a title [Unreleased], got none")
	}
	after, _, _ = strings.Cut(after, "\n## [")
	texts, err := prose(after)
	for i := range texts {
		texts[i].line += strings.Count(before, "\n") + 1
	}
	return texts, err
}

// blanked replaces the matches of expressions by an X, and keeps their line ends.
func blanked(content string, expressions []*regexp.Regexp) string {
	for _, e := range expressions {
		content = e.ReplaceAllStringFunc(content, func(match string) string {
			return "X" + strings.Repeat("\n", strings.Count(match, "\n"))
		})
	}
	return content
}

var paragraphEnd = regexp.MustCompile(`\n\s*(?:\n|[-*>] |\d+\. )|\|`)

// paragraphs splits a content at empty lines, items of lists and cells of tables.
func paragraphs(content string) []text {
	var texts []text
	line, from := 1, 0
	flush := func(to, next int) {
		part := content[from:to]
		trimmed := strings.TrimLeft(part, " \t\n")
		if trimmed != "" {
			texts = append(texts, text{line + strings.Count(part[:len(part)-len(trimmed)], "\n"), trimmed})
		}
		line += strings.Count(content[from:next], "\n")
		from = next
	}
	for _, at := range paragraphEnd.FindAllStringIndex(content, -1) {
		flush(at[0], at[1])
	}
	flush(len(content), len(content))
	return texts
}

// literals returns the string literals of a Go file that have a blank. Concatenated literals are one text.
func literals(content string) ([]text, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", content, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var texts []text
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // not the tag
			return n.Tag == nil
		case *ast.BinaryExpr:
			if joined, isText := concatenation(n); isText {
				texts = append(texts, text{files.Position(n.Pos()).Line, joined})
				return false
			}
		case *ast.BasicLit:
			if value, isText := unquoted(n); isText {
				texts = append(texts, text{files.Position(n.Pos()).Line, value})
			}
		}
		return true
	})
	withBlank := texts[:0]
	for _, t := range texts {
		if strings.Contains(strings.TrimSpace(t.content), " ") {
			withBlank = append(withBlank, t)
		}
	}
	return withBlank, nil
}

// comments returns the comments of a Go file, without code that a comment quotes by indentation.
func comments(content string) ([]text, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var texts []text
	for _, group := range file.Comments {
		at := files.Position(group.Pos())
		end := files.Position(group.End())
		texts = append(texts, text{at.Line, blanked(content[at.Offset:end.Offset], notComment)})
	}
	return texts, nil
}

// concatenation returns the value of a sum of literals, with an X for each other operand. It reports false if there is
// no literal in it.
func concatenation(e ast.Expr) (value string, isText bool) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, leftIsText := concatenation(e.X)
		right, rightIsText := concatenation(e.Y)
		return left + right, leftIsText || rightIsText
	case *ast.BasicLit:
		return unquoted(e)
	}
	return "X", false
}

// unquoted returns the value of a string literal.
func unquoted(l *ast.BasicLit) (value string, isText bool) {
	if l.Kind != token.STRING {
		return "X", false
	}
	value, err := strconv.Unquote(l.Value)
	return value, err == nil
}
