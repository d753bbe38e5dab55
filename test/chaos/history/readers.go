package history

// checkReaders looks at what each reader was given, one event after another, and at when.
func checkReaders(h History, f *findings) {
	calls := map[ID]int64{}
	for _, p := range h.Publishes {
		calls[p.ID] = p.Call
	}
	for i := range h.Readers {
		r := &h.Readers[i]
		next := r.Start
		for _, d := range r.Deliveries {
			begin := d.Offset - min(d.Offset, d.Skipped+d.Gap)
			switch {
			case d.Offset < next:
				f.add(Backwards, r.Shard, "reader %s got offset %d when %d was next", r.Name, d.Offset, next)
			case d.Gap > 0 && !r.Lossy:
				f.add(Hole, r.Shard, "reader %s was told of %d lost records before offset %d; nothing may be lost there", r.Name, d.Gap, d.Offset)
			case begin != next:
				f.add(Hole, r.Shard, "reader %s got offset %d (hidden %d, lost %d) when %d was next", r.Name, d.Offset, d.Skipped, d.Gap, next)
			}
			if call, known := calls[d.ID]; known && d.At < call {
				f.add(Early, r.Shard, "reader %s got %s at %d, and it was published at %d", r.Name, d.ID, d.At, call)
			}
			next = max(next, d.Offset+1)
		}
	}
}
