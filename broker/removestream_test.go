package broker

import (
	"context"
	"testing"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/stream"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
)

// B17: a publish that was written and is confirmed only after its stream was deleted
// has an offset that the stream's successor must not use again.
func TestAStreamEndsBehindWhatIsUnconfirmed(t *testing.T) {
	fs := faultfs.New(1)
	v := &served{entry: catalog.Entry{Spec: catalog.StreamSpec{Shards: 1, Durability: catalog.Durable}, FirstOffsets: []uint64{7}}}
	var k openShard
	var err error
	k.Shard, err = stream.Open(stream.Config{}, func(h stream.Hooks) (stream.Log, error) {
		l, _, err := seglog.Open(seglog.Config{FS: fs, Dir: "log", First: 7, Committed: h.Committed})
		return stream.Segments(l), err
	})
	if err != nil {
		t.Fatal(err)
	}
	v.shards = []openShard{k}
	publish := func() <-chan stream.Result {
		answer := make(chan stream.Result, 1)
		k.Publish(&stream.Publish{
			Records: wire.Records{Count: 1, Bytes: wire.AppendRecord(nil, []byte("x"))},
			Done:    func(r stream.Result) { answer <- r },
		})
		return answer
	}
	if r := <-publish(); r.Err != nil || r.Offset != 7 {
		t.Fatalf("%+v", r)
	}
	hanging, release := fs.Hold(faultfs.OpDatasync, nil)
	late := publish()
	<-hanging
	if ends := endsOf(v); len(ends) != 1 || ends[0] != 9 {
		t.Errorf("ends %v, want 9", ends)
	}
	release()
	if r := <-late; r.Err != nil || r.Offset != 8 {
		t.Errorf("%+v", r)
	}
	if err := closeShards(context.Background(), v.shards, stream.EndDeleted); err != nil {
		t.Error(err)
	}
}
