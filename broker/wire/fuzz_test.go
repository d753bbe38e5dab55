package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// seed adds all frames of the vectors, good and bad, that want accepts.
func seed(f *testing.F, want func(Flags) bool, add func(flags Flags, frame []byte)) {
	f.Helper()
	vectors := loadVectors(f)
	frames := make([]string, 0, len(vectors.Vectors)+len(vectors.Invalid))
	for _, v := range vectors.Vectors {
		frames = append(frames, v.Hex)
	}
	for _, v := range vectors.Invalid {
		frames = append(frames, v.Hex)
	}
	for _, s := range frames {
		frame := unhex(f, s)
		h, _ := ParseHeader(frame)
		if want(h.Flags) {
			add(h.Flags, frame)
		}
	}
}

func anyFlags(Flags) bool { return true }

func FuzzHeader(f *testing.F) {
	seed(f, anyFlags, func(_ Flags, frame []byte) { f.Add(frame) })
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			return
		}
		if got := AppendHeader(nil, h.Flags, int(h.Length)); !bytes.Equal(got, b[:HeaderLen]) {
			t.Errorf("%x became %x", b[:HeaderLen], got)
		}
	})
}

// FuzzMessage: what decodes encodes to something that decodes to the same.
func FuzzMessage(f *testing.F) {
	seed(f, func(fl Flags) bool { return fl == 0 }, func(_ Flags, frame []byte) { f.Add(frame[min(HeaderLen, len(frame)):]) })
	for _, m := range messages {
		f.Add(AppendMessage(nil, m)[HeaderLen:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		if err != nil {
			return
		}
		frame := AppendMessage(nil, m)
		again, err := DecodeMessage(frame[HeaderLen:])
		if err != nil {
			t.Fatalf("%s became %s: %v", b, frame[HeaderLen:], err)
		}
		// The body of an extension is kept as it was written.
		if diff := cmp.Diff(m, again, cmpopts.IgnoreFields(Extension{}, "Body")); diff != "" {
			t.Errorf("%s -first +again:\n%s", b, diff)
		}
	})
}

// fuzzBody: a body that decodes encodes to the same bytes, unless canonical
// says that there are several spellings of it.
func fuzzBody(f *testing.F, want func(Flags) bool, decode func(Flags, []byte) (encoded []byte, canonical bool, err error)) {
	f.Helper()
	seed(f, want, func(flags Flags, frame []byte) {
		if len(frame) >= HeaderLen {
			f.Add(uint16(flags), frame[HeaderLen:])
		}
	})
	f.Fuzz(func(t *testing.T, flags uint16, b []byte) {
		got, canonical, err := decode(Flags(flags), b)
		if err != nil || !canonical {
			return
		}
		if want := append(AppendHeader(nil, Flags(flags), len(b)), b...); !bytes.Equal(got, want) {
			t.Errorf("%x became %x", want, got)
		}
	})
}

func FuzzPublish(f *testing.F) {
	fuzzBody(f, func(fl Flags) bool { return fl.Has(FlagPublish) }, func(fl Flags, b []byte) ([]byte, bool, error) {
		p, err := DecodePublish(fl, b)
		if err != nil {
			return nil, false, err
		}
		n := uint32(0)
		for range p.Records.All() {
			n++
		}
		if n != p.Records.Count {
			panic("a region that was checked holds fewer records than its count")
		}
		return AppendPublish(nil, &p), true, nil
	})
}

func FuzzAck(f *testing.F) {
	fuzzBody(f, func(fl Flags) bool { return fl.Has(FlagAck) }, func(fl Flags, b []byte) ([]byte, bool, error) {
		a, err := DecodeAck(fl, b)
		if err != nil {
			return nil, false, err
		}
		// A class that is none is read as fatal.
		return AppendAck(nil, &a), a.Retry != RetryFatal, nil
	})
}

func FuzzEvents(f *testing.F) {
	fuzzBody(f, func(fl Flags) bool { return fl&(FlagEvents|FlagEventsLegacy) != 0 }, func(fl Flags, b []byte) ([]byte, bool, error) {
		e, err := DecodeEvents(fl, b)
		if err != nil {
			return nil, false, err
		}
		n := uint32(0)
		for range e.Each() {
			n++
		}
		if n != e.Records.Count {
			panic("a region that was checked holds fewer events than its count")
		}
		return AppendEvents(nil, &e), true, nil
	})
}

// FuzzOffsetFrame: a frame entered anywhere gives exactly the records behind
// that place.
func FuzzOffsetFrame(f *testing.F) {
	seed(f, func(fl Flags) bool { return fl == offsetFrameFlags }, func(_ Flags, frame []byte) { f.Add(frame, uint64(42)) })
	f.Fuzz(func(t *testing.T, b []byte, from uint64) {
		got, err := AppendFrom(nil, b, from)
		if err != nil {
			return
		}
		fi, err := PeekOffsetFrame(b)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := DecodeEvents(offsetFrameFlags, b[HeaderLen:])
		if err != nil {
			if from > fi.Base {
				t.Fatalf("cut from a frame that does not decode: %v", err)
			}
			return // copied as it is
		}
		part, err := DecodeEvents(offsetFrameFlags, got[HeaderLen:])
		if err != nil {
			t.Fatal(err)
		}
		if part.Base != max(from, whole.Base) || part.Base+uint64(part.Records.Count) != whole.Base+uint64(whole.Records.Count) {
			t.Errorf("%d+%d cut at %d is %d+%d", whole.Base, whole.Records.Count, from, part.Base, part.Records.Count)
		}
		if !bytes.HasSuffix(whole.Records.Bytes, part.Records.Bytes) {
			t.Error("other records")
		}
	})
}

func FuzzRouting(f *testing.F) {
	f.Add([]byte("user-1"), uint32(3), true)
	f.Fuzz(func(t *testing.T, key []byte, shards uint32, jump bool) {
		routing := RoutingModulo
		if jump {
			routing = RoutingJump
		}
		if got := ShardOf(key, true, shards, routing); got >= max(shards, 1) {
			t.Errorf("shard %d of %d", got, shards)
		}
	})
}
