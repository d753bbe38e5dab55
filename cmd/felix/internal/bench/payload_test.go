package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPatternReadsWhatItWrote(t *testing.T) {
	for _, size := range []int{headerLen, headerLen + 1, 256, 65536} {
		p := newPattern(7, size)
		b := make([]byte, size)
		for seq := range uint64(max(20, 300_000/size)) {
			want := record{seq: seq, publisher: uint16(seq % 3), stamp: stamp{due: time.Duration(seq + 1), late: time.Duration(seq)}}
			p.write(b, want)
			got, v := p.read(b)
			if v != good {
				t.Fatalf("size %d, record %d: verdict %d", size, seq, v)
			}
			if diff := cmp.Diff(got, want, cmp.AllowUnexported(record{}, stamp{})); diff != "" {
				t.Fatalf("size %d, record %d (-got +want)\n%s", size, seq, diff)
			}
		}
	}
}

func TestPatternSeesDamage(t *testing.T) {
	p := newPattern(7, 64)
	b := make([]byte, 64)
	p.write(b, record{seq: 5, publisher: 1})
	for i := headerLen; i < len(b); i++ {
		b[i] ^= 1
		if _, v := p.read(b); v != damaged {
			t.Errorf("byte %d flipped: verdict %d, want damaged", i, v)
		}
		b[i] ^= 1
	}
	b[7]++ // the sequence says 6, the body is that of 5
	if _, v := p.read(b); v != damaged {
		t.Errorf("another sequence: verdict %d, want damaged", v)
	}
	b[7]--
	if _, v := p.read(b[:63]); v != damaged {
		t.Errorf("short: verdict %d, want damaged", v)
	}
	for name, payload := range map[string][]byte{"empty": {}, "text": []byte("hello, this is another program's record")} {
		if _, v := p.read(payload); v != foreign {
			t.Errorf("%s: verdict %d, want foreign", name, v)
		}
	}
	if _, v := newPattern(8, 64).read(b); v != foreign {
		t.Errorf("another run's record: verdict %d, want foreign", v)
	}
}

func TestLatenessSaturates(t *testing.T) {
	p := newPattern(1, headerLen)
	b := make([]byte, headerLen)
	p.write(b, record{stamp: stamp{due: 1, late: time.Hour}})
	if got, _ := p.read(b); got.stamp.late != 1<<32-1 {
		t.Errorf("late = %v", got.stamp.late)
	}
}
