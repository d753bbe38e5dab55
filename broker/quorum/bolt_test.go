package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func testNode() *Node {
	n := newNode(NodeConfig{Self: Server{Node: "n1", Instance: "i1"}}, nil, nil)
	return n
}

func testGroup() *Group {
	g := &Group{n: testNode(), id: 1, closing: make(chan struct{}), ended: make(chan struct{})}
	g.slg = g.n.cfg.Log
	g.watch = &watch{g: g}
	g.leader = newLeadership(g)
	g.asked = newProposals(g)
	return g
}

// TestBoltDamage: whatever a file of bolt's has become, opening it says so or gives
// what was written; it does not end the process. // B79
func TestBoltDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole")
	store, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	g := testGroup()
	s, err := openStable(g, store, path)
	if err != nil {
		t.Fatal(err)
	}
	for term := range uint64(20) {
		if err := s.SetUint64([]byte(keyTerm), term); err != nil {
			t.Fatal(err)
		}
		if err := s.Set([]byte(keyVoted), []byte("n2.i7")); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string][]byte{"empty": {}, "zeros": make([]byte, len(whole)), "text": []byte("not bolt's")}
	for n := 0; n < len(whole); n += 512 {
		damages[fmt.Sprint("cut at ", n)] = whole[:n]
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		b := append([]byte(nil), whole...)
		for range 1 + i%8 {
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
		}
		damages[fmt.Sprint("flipped ", i)] = b
	}
	for page := 0; page < len(whole); page += 4096 {
		b := append([]byte(nil), whole...)
		clear(b[page : page+4096])
		damages[fmt.Sprint("zeroed page at ", page)] = b
	}
	found, stale := 0, 0
	for name, b := range damages {
		damaged := filepath.Join(dir, "damaged")
		if err := os.WriteFile(damaged, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tryBolt(damaged); errors.Is(err, errStale) {
			stale++
		} else if err != nil {
			found++
			if err.Error() == "" {
				t.Errorf("%s: error without a word", name)
			}
		}
		if err := os.Remove(damaged); err != nil {
			t.Fatal(err)
		}
	}
	if found < len(damages)/8 {
		t.Errorf("only %d of %d damages were found", found, len(damages))
	}
	// bolt's pages have no checksum: a changed page number may lead to a page of the state before.
	if stale > len(damages)/50 {
		t.Errorf("%d of %d damages went back to an older state", stale, len(damages))
	}
	if err := tryBolt(path); err != nil {
		t.Errorf("the file that is whole: %v", err)
	}
}

var errStale = errors.New("an older state")

// tryBolt opens a state store, checks what it says and writes to it.
func tryBolt(path string) error {
	g := testGroup()
	store, err := openBolt(path)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := openStable(g, store, path)
	if err != nil {
		return err
	}
	term, err := s.GetUint64([]byte(keyTerm))
	voted, err2 := s.Get([]byte(keyVoted))
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if term > 19 || string(voted) != "n2.i7" {
		panic(fmt.Sprintf("term %d, vote %s", term, voted))
	}
	if term < 19 {
		return errStale
	}
	return s.Set([]byte(keyVoted), []byte("n3.i1"))
}

// TestBoltStaysSmall: a thousand elections later the file is what it was. // B78
func TestBoltStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	store, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for i := range 200 {
		if err := store.Set(keyTerm, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 256<<10 {
		t.Errorf("the file has %d bytes", info.Size())
	}
}

// TestStateOfAnother: a directory that belongs to another server is not used. // B87
func TestStateOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	store, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := openStable(testGroup(), store, path); err != nil {
		t.Fatal(err)
	}
	other := testGroup()
	other.n.cfg.Self.Instance = "i2"
	var damaged *DamagedError
	if _, err := openStable(other, store, path); !errors.As(err, &damaged) {
		t.Errorf("opened the state of another server: %v", err)
	}
}
