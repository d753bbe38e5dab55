package house

import (
	"go/ast"
	"regexp"
	"slices"
)

// lockRow finds the lock of a line of a table in docs/locks.md.
var lockRow = regexp.MustCompile("(?m)^\\| `([^` ]+)`")

// listedLocks are the locks of docs/locks.md, in its order.
func listedLocks(text []byte) []string {
	var names []string
	for _, m := range lockRow.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// locksOf names every mutex that a file declares: package.Type.field, with the field that holds it for one in a
// struct without a name. The name of one that is embedded is that of its type.
func locksOf(f *ast.File, path string) []string {
	var names []string
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range decl.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, locksIn(s.Type, path+"."+s.Name.Name)...)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, locksIn(s.Type, path+"."+n.Name)...)
				}
			}
		}
	}
	return names
}

func locksIn(t ast.Expr, name string) []string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return locksIn(t.X, name)
	case *ast.SelectorExpr:
		if pkg, ok := t.X.(*ast.Ident); ok && pkg.Name == "sync" && slices.Contains([]string{"Mutex", "RWMutex"}, t.Sel.Name) {
			return []string{name}
		}
	case *ast.StructType:
		var names []string
		for _, f := range t.Fields.List {
			for _, n := range f.Names {
				names = append(names, locksIn(f.Type, name+"."+n.Name)...)
			}
			if sel, ok := f.Type.(*ast.SelectorExpr); ok && len(f.Names) == 0 {
				names = append(names, locksIn(sel, name+"."+sel.Sel.Name)...)
			}
		}
		return names
	}
	return nil
}
