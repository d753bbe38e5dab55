package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

func main() {
	packages := flag.Bool("packages", false, "print the packages and the -run expression for go test")
	rows := flag.String("rows", "", "Markdown `file` whose table rows begin with ids: print those without a test")
	flag.Parse()
	if err := run(os.Stdout, os.DirFS("."), *packages, *rows); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, tree fs.FS, packages bool, rows string) error {
	tests, err := scan(tree)
	if err != nil {
		return err
	}
	switch {
	case packages:
		fmt.Fprintln(out, selection(tests))
	case rows != "":
		table, err := os.ReadFile(rows)
		if err != nil {
			return err
		}
		for _, id := range missing(table, tests) {
			fmt.Fprintln(out, id)
		}
	default:
		for _, t := range tests {
			fmt.Fprintf(out, "%s\t%s\t%s\n", strings.Join(t.ids, ","), t.pkg, t.name)
		}
	}
	return nil
}

// selection is what go test needs to run these tests and, of their packages, nothing else.
func selection(tests []test) string {
	if len(tests) == 0 {
		return ""
	}
	var pkgs, names []string
	for _, t := range tests {
		pkgs = append(pkgs, t.pkg)
		names = append(names, t.name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(pkgs), " ") + " -run ^(" + strings.Join(slices.Compact(names), "|") + ")$"
}
