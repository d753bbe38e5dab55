package wire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPublishRoundTrip(t *testing.T) {
	base := Publish{Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("é"), Records: RecordsOf([]byte("a"), []byte{})}
	with := func(change func(*Publish)) Publish {
		p := base
		change(&p)
		return p
	}
	for name, p := range map[string]Publish{
		"unacked":   base,
		"acked":     with(func(p *Publish) { p.Acked, p.RequestID, p.AckMode = true, 1<<63+1, AckPerMessage }),
		"keyed":     with(func(p *Publish) { p.Keyed, p.Key = true, []byte{0, 0xff} }),
		"empty key": with(func(p *Publish) { p.Keyed, p.Key = true, []byte{} }),
		"idempotent": with(func(p *Publish) {
			p.Acked, p.RequestID, p.AckMode, p.Idempotent, p.ProducerID, p.Sequence = true, 9, AckPerBatch, true, 1<<63+7, 3
		}),
		"nothing": with(func(p *Publish) { p.Records = Records{Bytes: []byte{}} }),
	} {
		t.Run(name, func(t *testing.T) {
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			h, payload := splitFrame(t, AppendPublish([]byte{}, &p))
			got, err := DecodePublish(h.Flags, payload)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPublishCheck(t *testing.T) {
	long := make([]byte, 1<<16)
	for name, p := range map[string]Publish{
		"tenant":     {Tenant: long},
		"namespace":  {Namespace: long},
		"stream":     {Stream: long},
		"key":        {Keyed: true, Key: long},
		"ack mode":   {Acked: true},
		"idempotent": {Idempotent: true},
	} {
		if err := p.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	p := Publish{Records: Records{Count: 1, Bytes: make([]byte, MaxPayload)}}
	if _, ok := errors.AsType[*TooLargeError](p.Check()); !ok {
		t.Errorf("error %v", p.Check())
	}
	if err := (&Publish{Key: long}).Check(); err != nil {
		t.Errorf("a key that is not sent: %v", err)
	}
}

func BenchmarkDecodePublish(b *testing.B) {
	b.ReportAllocs()
	var region []byte
	for range 64 {
		region = AppendRecord(region, make([]byte, 256))
	}
	frame := AppendPublish(nil, &Publish{
		Acked: true, RequestID: 1, AckMode: AckPerBatch, Keyed: true, Key: []byte("key"),
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("demo"), Records: Records{Count: 64, Bytes: region},
	})
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		h, err := ParseHeader(frame)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodePublish(h.Flags, frame[HeaderLen:]); err != nil {
			b.Fatal(err)
		}
	}
}
