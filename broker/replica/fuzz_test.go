package replica

import (
	"bytes"
	"testing"
)

// Whatever bytes come from a log of entries, a snapshot or another broker, reading them
// ends, and takes no more memory than they have.
func FuzzReading(f *testing.F) {
	m, err := goldenManifest().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(m)
	f.Add((&page{}).append(nil))
	f.Add(append([]byte{entryVersion, kindTrim}, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseManifest(3, b); err == nil {
			again, err := m.encode()
			if err != nil || !bytes.Equal(again, b) && b[11]|b[10] == 0 {
				t.Errorf("a manifest of %d bytes is written again as %d: %v", len(b), len(again), err)
			}
		}
		_, _, _ = readPage(bytes.NewReader(b), nil)
		_, _ = readRequest(bytes.NewReader(b))
		_, _ = readTrims(b)
		for kind := range byte(kindTrim) {
			_, _ = readChange(kind, b)
		}
		for r := (reader{b: b}); ; {
			if _, _, err := readItem(&r); err != nil {
				break
			}
		}
	})
}
