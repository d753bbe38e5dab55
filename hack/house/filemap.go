package house

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// goFile finds the names of Go files in prose, among them those that stand for several: lock_*.go.
var goFile = regexp.MustCompile(`[a-z0-9_*]+\.go\b`)

// filesHeading begins the map of a package in the comment of its doc.go.
const filesHeading = "# Files\n"

// offTheMap compares the map of files that a package comment may have with the package's files: absent are those
// that the map does not name, and gone what it names that is not there.
func offTheMap(comment string, files []string) (absent, gone []string) {
	_, text, found := strings.Cut(comment, filesHeading)
	if !found {
		return nil, nil
	}
	names := goFile.FindAllString(text, -1)
	for _, f := range files {
		if f != "doc.go" && !slices.ContainsFunc(names, func(name string) bool { return stands(name, f) }) {
			absent = append(absent, f)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(files, func(f string) bool { return stands(name, f) }) {
			gone = append(gone, name)
		}
	}
	return absent, gone
}

// stands tells whether a name of a map stands for a file. A pattern that is malformed stands for none.
func stands(name, file string) bool {
	ok, err := path.Match(name, file)
	return ok && err == nil
}
