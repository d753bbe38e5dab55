package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// inText finds ids in comments and strings, where they stand as words.
	inText = regexp.MustCompile(`\bB(\d{2})\b`)
	// inName finds ids in test names, where other words touch them: TestB40TornTail, TestResume_B14.
	inName = regexp.MustCompile(`B(\d{2})(?:\D|$)`)
	isTest = regexp.MustCompile(`^(Test|Fuzz)[^a-z]`)
)

// test is a test function and the faults it holds.
type test struct {
	pkg, name string
	ids       []string
}

// scan parses every test file of the tree.
func scan(tree fs.FS) ([]test, error) {
	var tests []test
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && skipped(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		found, err := scanFile("./"+path.Dir(name), name, text)
		tests = append(tests, found...)
		return err
	})
	slices.SortFunc(tests, func(a, b test) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name)) })
	return tests, err
}

// skipped tells the folders whose tests hold no fault of the product. Those under hack/ talk about ids.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "hack"
}

// scanFile returns the tests of one file that carry an id.
func scanFile(pkg, name string, text []byte) ([]test, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse tests: %w", err)
	}
	var tests []test
	for _, decl := range parsed.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !isTest.MatchString(fn.Name.Name) {
			continue
		}
		start := fn.Pos()
		if fn.Doc != nil {
			start = fn.Doc.Pos()
		}
		body := text[files.Position(start).Offset:files.Position(fn.End()).Offset]
		ids := map[string]bool{}
		for _, m := range inName.FindAllStringSubmatch(fn.Name.Name, -1) {
			ids["B"+m[1]] = true
		}
		for _, m := range inText.FindAllSubmatch(body, -1) {
			ids["B"+string(m[1])] = true
		}
		if len(ids) == 0 {
			continue
		}
		found := test{pkg: pkg, name: fn.Name.Name}
		for id := range ids {
			found.ids = append(found.ids, id)
		}
		slices.Sort(found.ids)
		tests = append(tests, found)
	}
	return tests, nil
}

// missing lists the ids that begin a row of a Markdown table and that no test carries.
func missing(table []byte, tests []test) []string {
	held := map[string]bool{}
	for _, t := range tests {
		for _, id := range t.ids {
			held[id] = true
		}
	}
	var lacking []string
	for line := range strings.Lines(string(table)) {
		cell, isRow := strings.CutPrefix(line, "|")
		if !isRow {
			continue
		}
		cell, _, _ = strings.Cut(cell, "|")
		id := strings.TrimSpace(cell)
		if inText.FindString(id) == id && id != "" && !held[id] {
			lacking = append(lacking, id)
		}
	}
	return lacking
}
