package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const source = `package seglog

// TestTornTail cuts what is torn (B40).
func TestTornTail(t *testing.T) {}

func TestB41Damage(t *testing.T) {
	// also B42, and not B4 or AB43 or B444
}

func TestTable(t *testing.T) {
	t.Run("B50: full disk", nil)
}

func TestResume_B14(t *testing.T) {}

// helperB60 is no test.
func helperB60() {}

func TestPlain(t *testing.T) {}

func FuzzFrame(f *testing.F) { _ = "B70" }

func TestingB80(t *testing.T) {}
`

func scanned(t *testing.T) []test {
	t.Helper()
	tests, err := scanFile("./broker/seglog", "x_test.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func TestScanFile(t *testing.T) {
	want := []test{
		{"./broker/seglog", "TestTornTail", []string{"B40"}},
		{"./broker/seglog", "TestB41Damage", []string{"B41", "B42"}},
		{"./broker/seglog", "TestTable", []string{"B50"}},
		{"./broker/seglog", "TestResume_B14", []string{"B14"}},
		{"./broker/seglog", "FuzzFrame", []string{"B70"}},
	}
	if diff := cmp.Diff(scanned(t), want, cmp.AllowUnexported(test{})); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if _, err := scanFile("./x", "x_test.go", []byte("not Go")); err == nil {
		t.Error("a file that does not parse is no error")
	}
}

func TestMissing(t *testing.T) {
	table := "| Id | Symptom |\n|---|---|\n| B40 | torn |\n| B43 | B44 is in the text |\n|B14| resume |\nB99 in prose\n| B45 |\n"
	if diff := cmp.Diff(missing([]byte(table), scanned(t)), []string{"B43", "B45"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestSelection(t *testing.T) {
	tests := []test{{"./a", "TestB", nil}, {"./a", "TestA", nil}, {"./b", "TestA", nil}}
	if got, want := selection(tests), "./a ./b -run ^(TestA|TestB)$"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := selection(nil); got != "" {
		t.Errorf("no tests: %q", got)
	}
}

func TestScan(t *testing.T) {
	tree := fstest.MapFS{
		"broker/seglog/x_test.go":          {Data: []byte(source)},
		"broker/seglog/x.go":               {Data: []byte("package seglog // B90")},
		"broker/seglog/testdata/y_test.go": {Data: []byte("not Go")},
		"hack/faults/z_test.go":            {Data: []byte(source)},
		"root_test.go":                     {Data: []byte("package felix\n\nfunc TestB01(t *testing.T) {}\n")},
	}
	tests, err := scan(tree)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(tests); got != 6 {
		t.Errorf("%d tests, want 6: %v", got, tests)
	}
	if diff := cmp.Diff(tests[0], test{"./.", "TestB01", []string{"B01"}}, cmp.AllowUnexported(test{})); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
